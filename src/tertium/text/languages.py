"""The codes of languages that a setting may name, those of ISO 639-1, and pairs of them."""

from __future__ import annotations

from tertium.errors import UsageError

CODES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy
    hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li
    ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa
    pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th
    ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()
)


def parse_pair(lp: str) -> tuple[str, ...]:
    """The source and the target language of a pair such as de-en; none of an empty one.

    >>> parse_pair("de-en"), parse_pair("")
    (('de', 'en'), ())
    """
    codes = tuple(part for part in lp.split("-") if part)
    if lp and len(codes) != 2:
        raise UsageError(f"lp={lp}: expected a language pair such as de-en")
    for code in codes:
        if code not in CODES:
            raise UsageError(f"lp={lp}: {code!r} is no language code of ISO 639-1 such as de")
    return codes
