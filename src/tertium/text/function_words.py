"""Words that carry grammar rather than content: those more frequent than one in a thousand.

The lists are the facts METEOR 1.5 rests on (Denkowski and Lavie 2011): words and punctuation whose
relative frequency in a large news corpus is above 10^-3. They hold tokens as METEOR writes them, in
lower case. A language without a list has none: every word counts as content.
"""

from __future__ import annotations

from collections.abc import Mapping

_LISTS: Mapping[str, str] = {
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

_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}


def function_words(language: str) -> frozenset[str]:
    """The function words of a language; empty where there is no list.

    >>> "the" in function_words("en"), len(function_words("fi"))
    (True, 0)
    """
    return _WORDS.get(language, frozenset())
