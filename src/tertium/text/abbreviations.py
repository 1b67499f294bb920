"""Abbreviations whose full stop belongs to the word, by language.

`ALWAYS` keep their stop wherever they stand (Mr., Prof.), `BEFORE_NUMBER` only before a figure
(No. 7, Art. 2). Upper and lower case matter. The lists are those in common use with statistical
machine translation, so that texts come apart where readers of this field expect it.
"""

from __future__ import annotations

from collections.abc import Mapping

_LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z "

_TITLES = """
    Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Ens Gen Gov Hon Hosp
    Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev
    Rt Sen Sens Sfc Sgt Sr St Supt Surg
    """

_ROMAN = """
    I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX
    """

_RUSSIAN_UNITS = "гг г м мм см дм л км га кг т мг"

_ALWAYS: Mapping[str, str] = {
    "en": _LETTERS + _TITLES + "Drs Hr v vs i.e rev e.g Nos Nr",
    "de": _LETTERS
    + _LETTERS.lower()
    + _ROMAN
    + _ROMAN.lower()
    + _TITLES
    + " ".join(map(str, range(1, 100)))
    + """ Mio Mrd bzw v vs usw d.h z.B u.a etc MwSt ggf d.J D.h m.E vgl I.F z.T sogen ff u.E g.U
    g.g.A c.-à-d Buchst u.s.w sog u.ä Std evtl Zt Chr u.U o.ä Ltd b.A z.Zt spp sen SA k.o jun i.H.v
    dgl dergl Co zzt usf s.p.a Dkr bzgl BSE No Nos Art Nr pp ca Ca""",
    "fr": _LETTERS
    + _LETTERS.lower()
    + """A.C.N A.M art ann apr av auj lib B.P boul ca c.-à-d cf ch.-l chap contr C.P.I C.Q.F.D C.N
    C.N.S C.S dir éd e.g env al etc E.V ex fasc fém fig fr hab ibid id i.e inf LL.AA LL.AA.II
    LL.AA.RR LL.AA.SS L.D LL.EE LL.MM LL.MM.II.RR loc.cit masc MM ms N.B N.D.A N.D.L.R N.D.T n/réf
    NN.SS N.S N.D N.P.A.I p.c.c pl pp p.ex p.j P.S R.A.S R.-V R.P R.I.P SS S.S S.A S.A.I S.A.R S.A.S
    S.E sec sect sing S.M S.M.I.R sq sqq suiv sup suppl tél T.S.V.P vb vol vs X.O Z.I""",
    "es": _LETTERS
    + """A.C Apdo Av Bco CC.AA Da Dep Dn Dr Dra EE.UU Excmo FF.CC Fil Gral J.C Let Lic N.B P.D P.V.P
    Prof Pts Rte S.A S.A.R S.E S.L S.R.C Sr Sra Srta Sta Sto T.V.E Tel Ud Uds V.B V.E Vd Vds a/c adj
    admón afmo apdo av c c.f c.g cap cm cta dcha doc ej entlo esq etc f.c gr grs izq kg km mg mm núm
    p p.a p.ej ptas pág págs q.e.g.e q.e.s.m s s.s.s vid vol""",
    "ru": _LETTERS
    + " ".join(f"{digit}{unit}" for unit in _RUSSIAN_UNITS.split() for digit in range(10))
    + " "
    + " ".join(f"{numeral}{century}" for century in ("в", "вв") for numeral in "XVILMC")
    + """ бульв в вв г га гг гл гос д дм доп др е ед зам и инд исп Исп к кап кг кв кл км кол комн
    коп куб л лиц лл м макс мг мин мл млн млрд мм н наб нач неуд ном о обл обр общ ок ост отл п пер
    перераб пл пос пр просп проф р ред руб с сб св см соч ср ст стр т тел Тел тех тт туп тыс уд ул
    уч физ х хор ч чел шт экз э""",
}

_BEFORE_NUMBER: Mapping[str, str] = {"en": "No Art pp"}


def _split(lists: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in lists.items()}


ALWAYS: Mapping[str, frozenset[str]] = _split(_ALWAYS)
BEFORE_NUMBER: Mapping[str, frozenset[str]] = _split(_BEFORE_NUMBER)
