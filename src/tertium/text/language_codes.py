"""ISO 639-1 language codes, aliases of other codes, and language pairs such as de-en."""

from __future__ import annotations

import re

from tertium.errors import UsageError

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

CODE_ALIASES = dict(  # three-letter codes (as in FLORES), older codes and country codes
    pair.split(":")
    for pair in """
    afr:af amh:am ara:ar arb:ar aze:az bel:be ben:bn bos:bs bul:bg cat:ca ces:cs chi:zh cmn:zh
    cn:zh cym:cy cz:cs cze:cs dan:da deu:de dk:da dut:nl ell:el eng:en est:et eus:eu fas:fa
    fin:fi fra:fr fre:fr ger:de gle:ga glg:gl gr:el gre:el guj:gu hau:ha heb:he hin:hi hrv:hr
    hun:hu hye:hy ibo:ig in:id ind:id isl:is ita:it iw:he ji:yi jp:ja jpn:ja kan:kn kat:ka
    kaz:kk khm:km kor:ko lav:lv lit:lt lvs:lv mal:ml mar:mr mkd:mk mlt:mt mon:mn msa:ms mya:my
    nep:ne nld:nl nob:nb nor:no pan:pa pes:fa pol:pl por:pt pus:ps ron:ro rum:ro rus:ru sin:si
    slk:sk slo:sk slv:sl som:so spa:es sqi:sq srp:sr swa:sw swe:sv swh:sw tam:ta tel:te tgl:tl
    tha:th tur:tr ua:uk ukr:uk urd:ur uzb:uz vie:vi xho:xh yor:yo zho:zh zul:zu
    """.split()
)


MACROLANGUAGES = {"nb": "no", "nn": "no"}  # written standards that are not distinguished


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


def check_language_code(code: str, where: str = "") -> None:
    """Raise `UsageError` for an invalid language code, with the code that was probably meant.

    >>> check_language_code("zh_CN")
    Traceback (most recent call last):
        ...
    tertium.errors.UsageError: 'zh_CN' is not an ISO 639-1 language code such as de; write zh
    """
    if code in LANGUAGE_CODES:
        return
    root = re.split(r"[-_]", code.strip().lower())[0]
    suggestion = root if root in LANGUAGE_CODES else CODE_ALIASES.get(root, "")
    hint = f"; write {suggestion}" if suggestion else ""
    raise UsageError(f"{where}{code!r} is not an ISO 639-1 language code such as de{hint}")
