"""METEOR's tokenization, stemming and function words.

Tokenization follows `-norm` of METEOR 1.5, which is based on the Moses tokenizer. Full stops are
split off unless the word is an abbreviation; U.S. loses its dots; hyphenated words are split;
English clitics ('s, 't) and French articles (l') become tokens; an ellipsis stays together.

Abbreviations keep their full stop always (Mr., Prof.) or only before a digit (No. 7, Art. 2); case
matters. The lists are the ones commonly used in statistical machine translation. Stems are those of
Snowball, cached because stemming is slow; PyStemmer is used if installed. Function words are those
of METEOR 1.5 (Denkowski and Lavie 2011): words and punctuation with a relative frequency above
10^-3 in a large news corpus, in lower case. Languages without a list have no function words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from tertium.text.language_codes import LANGUAGE_NAMES

# The languages that METEOR normalizes and their letters; other characters are separate tokens.
_NORMALIZED_LANGUAGES = frozenset({"en", "cs", "de", "es", "fr", "ru"})
_LETTERS = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_DOT = "\ue000"  # replaces the dots of an ellipsis during tokenization (private use)

_ELLIPSIS = re.compile(r"\.{2,}")
# A comma between digits belongs to the number.
_COMMAS = tuple(
    re.compile(f"({left}),({right})")
    for left, right in (("[^0-9]", "[^0-9]"), ("[0-9]", "[^0-9]"), ("[^0-9]", "[0-9]"))
)
_SINGLE_QUOTE = re.compile("[`‘’]")
_DOUBLE_QUOTE = re.compile("[“”]|''")
_LOWER = re.compile("[a-z]")
_DIGIT = re.compile("[0-9]")

Substitution = tuple[re.Pattern[str], str]
_SINGLE_LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z "

_TITLES = """
    Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Ens Gen Gov Hon Hosp
    Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev
    Rt Sen Sens Sfc Sgt Sr St Supt Surg
    """

_ROMAN = """
    I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX
    """

_RUSSIAN_UNITS = "гг г м мм см дм л км га кг т мг"

_ABBREVIATION_LISTS: Mapping[str, str] = {
    "en": _SINGLE_LETTERS + _TITLES + "Drs Hr v vs i.e rev e.g Nos Nr",
    "de": _SINGLE_LETTERS
    + _SINGLE_LETTERS.lower()
    + _ROMAN
    + _ROMAN.lower()
    + _TITLES
    + " ".join(map(str, range(1, 100)))
    + """ Mio Mrd bzw v vs usw d.h z.B u.a etc MwSt ggf d.J D.h m.E vgl I.F z.T sogen ff u.E g.U
    g.g.A c.-à-d Buchst u.s.w sog u.ä Std evtl Zt Chr u.U o.ä Ltd b.A z.Zt spp sen SA k.o jun i.H.v
    dgl dergl Co zzt usf s.p.a Dkr bzgl BSE No Nos Art Nr pp ca Ca""",
    "fr": _SINGLE_LETTERS
    + _SINGLE_LETTERS.lower()
    + """A.C.N A.M art ann apr av auj lib B.P boul ca c.-à-d cf ch.-l chap contr C.P.I C.Q.F.D C.N
    C.N.S C.S dir éd e.g env al etc E.V ex fasc fém fig fr hab ibid id i.e inf LL.AA LL.AA.II
    LL.AA.RR LL.AA.SS L.D LL.EE LL.MM LL.MM.II.RR loc.cit masc MM ms N.B N.D.A N.D.L.R N.D.T n/réf
    NN.SS N.S N.D N.P.A.I p.c.c pl pp p.ex p.j P.S R.A.S R.-V R.P R.I.P SS S.S S.A S.A.I S.A.R S.A.S
    S.E sec sect sing S.M S.M.I.R sq sqq suiv sup suppl tél T.S.V.P vb vol vs X.O Z.I""",
    "es": _SINGLE_LETTERS
    + """A.C Apdo Av Bco CC.AA Da Dep Dn Dr Dra EE.UU Excmo FF.CC Fil Gral J.C Let Lic N.B P.D P.V.P
    Prof Pts Rte S.A S.A.R S.E S.L S.R.C Sr Sra Srta Sta Sto T.V.E Tel Ud Uds V.B V.E Vd Vds a/c adj
    admón afmo apdo av c c.f c.g cap cm cta dcha doc ej entlo esq etc f.c gr grs izq kg km mg mm núm
    p p.a p.ej ptas pág págs q.e.g.e q.e.s.m s s.s.s vid vol""",
    "ru": _SINGLE_LETTERS
    + " ".join(f"{digit}{unit}" for unit in _RUSSIAN_UNITS.split() for digit in range(10))
    + " "
    + " ".join(f"{numeral}{century}" for century in ("в", "вв") for numeral in "XVILMC")
    + """ бульв в вв г га гг гл гос д дм доп др е ед зам и инд исп Исп к кап кг кв кл км кол комн
    коп куб л лиц лл м макс мг мин мл млн млрд мм н наб нач неуд ном о обл обр общ ок ост отл п пер
    перераб пл пос пр просп проф р ред руб с сб св см соч ср ст стр т тел Тел тех тт туп тыс уд ул
    уч физ х хор ч чел шт экз э""",
}

_ABBREVIATIONS_BEFORE_NUMBER: Mapping[str, str] = {"en": "No Art pp"}
STEMMED_LANGUAGES = frozenset(
    "ar hy eu ca da nl en fi fr de el hi hu id ga it lt ne no pt ro ru sr es sv ta tr yi".split()
)
_FUNCTION_WORD_LISTS: Mapping[str, str] = {
    "en": """
        the , . to of and a in that for " is on 's it with was as said at he by be from have has are
        his but an this not i will ’ they ) -rrb- ( -lrb- who their had we which were been more or s
        its would about new one after you : also up when there than $ all out her people she year
        two - can if last first “ over other ” into some what so -- no time years could ? 't — '
        """,
    "cs": """
        , . a v na se je že " to s o z do i ale - si za ve by k pro ) -rrb- ( -lrb- tak po : ... ?
        jsem jako už od jsou bude které který co podle jen jak “ jeho když „ nebo aby má u byl až
        také ze jsme před než která sa však ani ještě při není bylo být
        """,
    "de": """
        , . die der und in den das " zu von mit für ist auf im nicht sich es ein eine dem des : sie
        auch als dass an er nach hat bei wie werden aus ich um am ) -rrb- ( -lrb- wir vor sind - “
        wird noch „ einer aber einen haben so einem über nur zum war mehr ? oder man wenn sein zur
        hatte prozent gegen bis sagte diese kann euro durch was wurde sei ihre doch schon habe –
        unter dann seine ! können wieder dieser
        """,
    "es": """
        de , la . que el en y a los del las se un por con una no para es al su ha " lo como más » «
        este ( -lrb- ) -rrb- sobre sus pero esta también o han : si entre ya sin comisión presidente
        % está años dos le son todo desde muy ser europea parte cuando ' hay hasta todos año
        """,
    "fr": """
        , de . la le à et les l' des en d' du un a une pour est que dans qui ’ au " il par sur )
        -rrb- ( -lrb- pas « » ce : plus avec ont se son ne nous s' qu' l aux été sont mais cette n'
        h je d - on % sa ses ou deux ans leur c' comme elle fait y être tout ces après aussi avait
        ils président même ; si ? faire était depuis entre
        """,
    "ru": """
        , . в " и на - -- не что с по из : а как ) за ( к это для но о от у он то его все до я года
        ? мы россии будет уже так было % же только после они при их также был время если еще этом во
        году или чтобы которые том более когда может
        """,
}


def _split_lists(lists: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in lists.items()}


ABBREVIATIONS, NUMERIC_ABBREVIATIONS, _FUNCTION_WORDS = map(
    _split_lists, (_ABBREVIATION_LISTS, _ABBREVIATIONS_BEFORE_NUMBER, _FUNCTION_WORD_LISTS)
)


@dataclass(frozen=True)
class _Rules:
    letter: re.Pattern[str]
    separate: re.Pattern[str]  # a character that is a token by itself
    hyphen: re.Pattern[str]
    apostrophes: tuple[Substitution, ...]


@cache
def _rules(language: str) -> _Rules:
    if language in _NORMALIZED_LANGUAGES:
        inside = f"0-9{_LETTERS}"
        letter = f"[{_LETTERS}]"
        alone = ""
    else:
        # A run of letters and combining marks is a word; ideographs and kana are single tokens.
        inside = rf"\w{_marks()}"
        letter = r"[^\W\d_]"
        alone = f"|[{_IDEOGRAPH}]"
    return _Rules(
        letter=re.compile(letter),
        separate=re.compile(rf"([^{inside} \t\n\v\f\r.'`,\-‘’]{alone})"),
        hyphen=re.compile(f"([{inside}.])-([{inside}])"),
        apostrophes=_apostrophes(language),
    )


def _apostrophes(language: str) -> tuple[Substitution, ...]:
    """Return the apostrophe rules: English keeps it with the right part, French with the left."""
    if language not in ("en", "fr"):
        return ((re.compile("'"), " ' "),)
    a = f"[{_LETTERS}]"
    z = f"[^{_LETTERS}]"
    digits = "0-9" if language == "en" else ""
    rules = [
        (f"({z})'({z})", r"\1 ' \2"),
        (f"([^{_LETTERS}{digits}])'({a})", r"\1 ' \2"),
        (f"({a})'({z})", r"\1 ' \2"),
        (f"({a})'({a})", r"\1 '\2" if language == "en" else r"\1' \2"),
    ]
    if language == "en":
        rules.append(("([0-9])'(s)", r"\1 '\2"))
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def _marks() -> str:
    marks = (chr(code) for code in range(0x300, 0x20000))
    return "".join(mark for mark in marks if unicodedata.category(mark).startswith("M"))


@lru_cache(maxsize=1 << 16)
def tokenize_meteor(text: str, language: str = "en") -> tuple[str, ...]:
    """Tokenize a text.

    >>> " ".join(tokenize_meteor("Mr. Smith's U.S.-based co-owners didn't pay 1,500 euros..."))
    "mr. smith 's us based co owners didn 't pay 1,500 euros ..."
    """
    rules = _rules(language)
    text = rules.separate.sub(r" \1 ", f" {text} ")
    text = _ELLIPSIS.sub(lambda dots: f" {_DOT * len(dots.group())} ", text)
    for comma in _COMMAS:
        text = comma.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTE.sub(' " ', _SINGLE_QUOTE.sub("'", text))
    text = rules.hyphen.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    for apostrophe, replacement in rules.apostrophes:
        text = apostrophe.sub(replacement, text)
    text = " ".join(_full_stops(text.split(), language, rules))
    return tuple(text.replace(_DOT, ".").lower().split())


def _full_stops(words: list[str], language: str, rules: _Rules) -> Iterator[str]:
    """Split the full stop off each word that is not an abbreviation."""
    always = ABBREVIATIONS.get(language, frozenset[str]())
    before_number = NUMERIC_ABBREVIATIONS.get(language, frozenset[str]())
    for word, following in pairwise((*words, "")):
        stem = word[:-1]
        if not stem or word[-1] != ".":
            yield word
        elif "." in stem and rules.letter.search(stem):
            yield word.replace(".", "")
        elif (
            stem in always
            or _LOWER.match(following)
            or (stem in before_number and _DIGIT.match(following))
        ):
            yield word
        else:
            yield f"{stem} ."


def has_stemmer(language: str) -> bool:
    """Tell whether there is a stemmer for a language."""
    return language in STEMMED_LANGUAGES


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return a function that stems lower-case words; the identity for unsupported languages.

    >>> stem = stemmer("en")
    >>> stem("running"), stem("happily"), stemmer("cs")("slova")
    ('run', 'happili', 'slova')
    """
    if not has_stemmer(language):
        return str
    import snowballstemmer

    name = LANGUAGE_NAMES[language].lower()
    stem: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return lru_cache(maxsize=1 << 17)(stem)


def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language; empty if there is no list.

    >>> "the" in function_words("en"), len(function_words("fi"))
    (True, 0)
    """
    return _FUNCTION_WORDS.get(language, frozenset())
