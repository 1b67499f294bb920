"""ISO 639-1 language codes, aliases of other codes, and language pairs such as de-en."""

from __future__ import annotations

import re

from tertium.core.errors import UsageError

LANGUAGE_CODES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy
    hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li
    ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa
    pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th
    ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()
)

CODE_ALIASES = dict(  # ISO 639-2 and 639-3 codes, older codes and country codes
    pair.split(":")
    for pair in """
    aar:aa abk:ab afr:af aka:ak alb:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as ava:av ave:ae
    aym:ay aze:az bak:ba bam:bm baq:eu bel:be ben:bn bih:bh bis:bi bod:bo bos:bs bre:br bul:bg
    bur:my cat:ca ces:cs cha:ch che:ce chi:zh chu:cu chv:cv cmn:zh cn:zh cor:kw cos:co cre:cr
    cym:cy cz:cs cze:cs dan:da deu:de div:dv dk:da dut:nl dzo:dz ell:el eng:en epo:eo est:et eus:eu
    ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fre:fr fry:fy ful:ff geo:ka ger:de gla:gd gle:ga
    glg:gl glv:gv gr:el gre:el grn:gn guj:gu hat:ht hau:ha heb:he her:hz hin:hi hmo:ho hrv:hr
    hun:hu hye:hy ibo:ig ice:is ido:io iii:ii iku:iu ile:ie in:id ina:ia ind:id ipk:ik isl:is
    ita:it iw:he jav:jv ji:yi jp:ja jpn:ja kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khm:km kik:ki
    kin:rw kir:ky kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt
    ltz:lb lub:lu lug:lg lvs:lv mac:mk mah:mh mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt
    mon:mn mri:mi msa:ms mya:my nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb
    nor:no nya:ny oci:oc oji:oj ori:or orm:om oss:os pan:pa per:fa pes:fa pli:pi pol:pl por:pt
    pus:ps que:qu roh:rm ron:ro rum:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk slo:sk slv:sl
    sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw
    swe:sv swh:sw tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tib:bo tir:ti ton:to tsn:tn
    tso:ts tuk:tk tur:tr twi:tw ua:uk uig:ug ukr:uk urd:ur uzb:uz ven:ve vie:vi vol:vo wel:cy
    wln:wa wol:wo xho:xh yid:yi yor:yo zha:za zho:zh zul:zu
    """.split()
)

LANGUAGE_NAMES = dict(  # English names; a blank is written as _
    pair.replace("_", " ").split(":")
    for pair in """
    aa:Afar ab:Abkhaz ae:Avestan af:Afrikaans ak:Akan am:Amharic an:Aragonese ar:Arabic
    as:Assamese av:Avar ay:Aymara az:Azerbaijani ba:Bashkir be:Belarusian bg:Bulgarian
    bh:Bihari bi:Bislama bm:Bambara bn:Bengali bo:Tibetan br:Breton bs:Bosnian ca:Catalan
    ce:Chechen ch:Chamorro co:Corsican cr:Cree cs:Czech cu:Church_Slavonic cv:Chuvash cy:Welsh
    da:Danish de:German dv:Dhivehi dz:Dzongkha ee:Ewe el:Greek en:English eo:Esperanto
    es:Spanish et:Estonian eu:Basque fa:Persian ff:Fula fi:Finnish fj:Fijian fo:Faroese
    fr:French fy:Frisian ga:Irish gd:Scottish_Gaelic gl:Galician gn:Guarani gu:Gujarati
    gv:Manx ha:Hausa he:Hebrew hi:Hindi ho:Hiri_Motu hr:Croatian ht:Haitian_Creole
    hu:Hungarian hy:Armenian hz:Herero ia:Interlingua id:Indonesian ie:Interlingue ig:Igbo
    ii:Nuosu ik:Inupiaq io:Ido is:Icelandic it:Italian iu:Inuktitut ja:Japanese jv:Javanese
    ka:Georgian kg:Kongo ki:Kikuyu kj:Kwanyama kk:Kazakh kl:Greenlandic km:Khmer kn:Kannada
    ko:Korean kr:Kanuri ks:Kashmiri ku:Kurdish kv:Komi kw:Cornish ky:Kyrgyz la:Latin
    lb:Luxembourgish lg:Ganda li:Limburgish ln:Lingala lo:Lao lt:Lithuanian lu:Luba-Katanga
    lv:Latvian mg:Malagasy mh:Marshallese mi:Maori mk:Macedonian ml:Malayalam mn:Mongolian
    mr:Marathi ms:Malay mt:Maltese my:Burmese na:Nauruan nb:Norwegian_Bokmål
    nd:Northern_Ndebele ne:Nepali ng:Ndonga nl:Dutch nn:Norwegian_Nynorsk no:Norwegian
    nr:Southern_Ndebele nv:Navajo ny:Chichewa oc:Occitan oj:Ojibwe om:Oromo or:Odia
    os:Ossetian pa:Punjabi pi:Pali pl:Polish ps:Pashto pt:Portuguese qu:Quechua rm:Romansh
    rn:Kirundi ro:Romanian ru:Russian rw:Kinyarwanda sa:Sanskrit sc:Sardinian sd:Sindhi
    se:Northern_Sami sg:Sango si:Sinhala sk:Slovak sl:Slovenian sm:Samoan sn:Shona so:Somali
    sq:Albanian sr:Serbian ss:Swati st:Sesotho su:Sundanese sv:Swedish sw:Swahili ta:Tamil
    te:Telugu tg:Tajik th:Thai ti:Tigrinya tk:Turkmen tl:Tagalog tn:Tswana to:Tongan
    tr:Turkish ts:Tsonga tt:Tatar tw:Twi ty:Tahitian ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek
    ve:Venda vi:Vietnamese vo:Volapük wa:Walloon wo:Wolof xh:Xhosa yi:Yiddish yo:Yoruba
    za:Zhuang zh:Chinese zu:Zulu
    """.split()
)

LANGUAGE_FAMILIES = {  # branches of Indo-European, other families
    code: family
    for family, codes in {
        "germanic": "af da de en fo fy is lb li nb nl nn no sv yi",
        "slavic": "be bg bs cs cu hr mk pl ru sk sl sr uk",
        "romance": "an ca co es fr gl it la oc pt rm ro sc wa",
        "baltic": "lt lv",
        "celtic": "br cy ga gd gv kw",
        "indo-aryan": "as bh bn dv gu hi ks mr ne or pa pi sa sd si ur",
        "iranian": "fa ku os ps tg",
        "uralic": "et fi hu kv se",
        "turkic": "az ba cv kk ky tk tr tt ug uz",
        "semitic": "am ar he mt ti",
        "dravidian": "kn ml ta te",
        "sinitic": "zh",
        "japonic": "ja",
        "koreanic": "ko",
    }.items()
    for code in codes.split()
}
MACROLANGUAGES = {"nb": "no", "nn": "no"}  # written standards that are not distinguished


def normalize_language_pair(lp: str) -> str:
    """Write a language pair with ISO 639-1 codes and a hyphen; other texts are unchanged.

    >>> [normalize_language_pair(lp) for lp in ("eng-deu", "ende", "en-cs_CZ", "mas-en")]
    ['en-de', 'en-de', 'en-cs_CZ', 'mas-en']
    """
    if len(lp) == 4 and {lp[:2], lp[2:]} <= LANGUAGE_CODES:
        return f"{lp[:2]}-{lp[2:]}"
    codes = (CODE_ALIASES.get(code, code) if len(code) == 3 else code for code in lp.split("-"))
    return "-".join(codes)


def parse_language_pair(lp: str) -> tuple[str, ...]:
    """Split a language pair such as de-en into source and target; an empty pair gives ().

    >>> parse_language_pair("de-en"), parse_language_pair("")
    (('de', 'en'), ())
    """
    codes = tuple(part for part in lp.split("-") if part)
    if lp and len(codes) != 2:
        raise UsageError(
            f"lp={lp}: expected a language pair such as de-en, two codes without region or script"
        )
    for code in codes:
        check_language_code(code, f"lp={lp}: ")
    return codes


def macrolanguage(code: str) -> str:
    """Return the language that a code is a written standard of, else the code itself.

    >>> macrolanguage("nb"), macrolanguage("de")
    ('no', 'de')
    """
    return MACROLANGUAGES.get(code, code)


def language_family(code: str) -> str:
    """Return the family of a language, or an empty string if it is not listed.

    >>> language_family("uk"), language_family("eu")
    ('slavic', '')
    """
    return LANGUAGE_FAMILIES.get(code, "")


def find_language_code(tag: str) -> str:
    """Return the ISO 639-1 code of a language tag, or an empty string if it has none.

    >>> find_language_code("pt-BR"), find_language_code("deu"), find_language_code("Arabic")
    ('pt', 'de', '')
    """
    root = re.split(r"[-_]", tag.strip().lower())[0]
    return root if root in LANGUAGE_CODES else CODE_ALIASES.get(root, "")


def check_language_code(code: str, where: str = "") -> None:
    """Raise `UsageError` for an invalid language code, with the code that was probably meant.

    >>> check_language_code("zh_CN")
    Traceback (most recent call last):
        ...
    tertium.core.errors.UsageError: 'zh_CN' is not an ISO 639-1 language code such as de; write zh
    """
    if code in LANGUAGE_CODES:
        return
    suggestion = find_language_code(code)
    hint = f"; write {suggestion}" if suggestion else ""
    raise UsageError(f"{where}{code!r} is not an ISO 639-1 language code such as de{hint}")
