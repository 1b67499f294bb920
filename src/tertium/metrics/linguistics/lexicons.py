"""Closed lists of English words that change the entailments of a sentence.

Entries are lower-case lemmas; multi-words are joined by underscores. The lists are short and
written by hand: negation, modality, attitude, quantifiers, pronouns, connectives.
"""

from __future__ import annotations

from collections.abc import Mapping


def word_set(text: str) -> frozenset[str]:
    """Split a text into a set of words."""
    return frozenset(text.split())


def map_to_class(**classes: str) -> Mapping[str, str]:
    """Map each word to its class, given the words of each class.

    >>> map_to_class(USD="$ dollar", EUR="euro")
    {'$': 'USD', 'dollar': 'USD', 'euro': 'EUR'}
    """
    return {word: name for name, words in classes.items() for word in words.split()}


NEGATIONS = word_set(
    "not n't never neither nor no none nobody nothing nowhere no_one no_longer without"
)
NEGATIVE_PRONOUNS = word_set("nobody nothing none no_one neither")
NEGATIVE_DETERMINERS = word_set("no neither")

MODAL_VERBS = map_to_class(
    possible="can could may might",
    necessary="must should ought need",
    hypothetical="would",
)
FUTURE_AUXILIARIES = word_set("will shall 'll wo sha")
SEMI_MODALS = map_to_class(  # verbs and adjectives that take an infinitive
    necessary="have need oblige require force supposed suppose necessary",
    possible="able possible unlikely allow permit enable",
    probable="likely seem appear",
    certain="bind sure certain",
)
MODAL_ADVERBS = map_to_class(
    certain="""certainly surely definitely undoubtedly clearly obviously indeed of_course
    doubtless inevitably undeniably""",
    probable="probably likely presumably apparently seemingly supposedly allegedly reportedly",
    possible="possibly perhaps maybe potentially conceivably perchance",
    necessary="necessarily",
)
CONDITIONALS = word_set("if unless whether provided assuming lest in_case otherwise")

ATTITUDES = map_to_class(
    factive="""know realize realise regret discover learn notice remember forget reveal confirm
    prove acknowledge recognize recognise find see hear understand aware glad sorry happy proud
    surprise discovery fact demonstrate show establish observe resent ignore""",
    report="""say tell report announce declare state claim allege assert argue maintain insist
    explain add write note mention suggest warn accuse statement announcement according emphasize
    stress admit reply answer respond comment point""",
    belief="""think believe suppose assume suspect guess imagine expect predict estimate doubt
    consider feel fear seem appear figure reckon belief expectation presume convinced sure
    certain""",
    wish="""want wish hope plan intend try attempt aim promise threaten seek ask demand urge order
    propose request like desire prefer agree decide prepare tend ready willing""",
    positive="""manage succeed happen bother dare force make get help continue begin start
    cause""",
    negative="""fail refuse decline neglect avoid prevent stop deny reject forbid ban refrain
    unable prohibit miss lack cease unwilling impossible""",
)

QUANTIFIERS = map_to_class(
    all="all every each both everyone everybody everything always entire whole",
    most="most majority mostly usually",
    many="many much numerous a_lot lot often frequently a_great_deal plenty",
    some="""some several any someone somebody something anyone anybody anything sometimes a_few
    a_little various""",
    few="few little rarely seldom hardly",
    none="no none nobody nothing no_one never neither",
)
QUANTIFIER_ORDER = ("none", "few", "some", "many", "most", "all")

# Words with a downward monotone scope: a more general statement does not follow.
DOWNWARD = word_set(
    "not n't no never nobody nothing none no_one neither nor without few hardly barely scarcely "
    "rarely seldom if unless doubt deny refuse fail avoid prevent forbid lack reject every all each"
)

INDEFINITE_PEOPLE = word_set(
    "anybody anyone somebody someone nobody no_one everybody everyone people person man one"
)
INDEFINITE_THINGS = word_set("anything something nothing everything thing")

# person, number, gender; an empty field means any
PRONOUNS: Mapping[str, tuple[str, str, str]] = {
    word: features
    for features, listed in {
        ("1", "sing", ""): "i me my mine myself",
        ("1", "plur", ""): "we us our ours ourselves",
        ("2", "", ""): "you your yours",
        ("2", "sing", ""): "yourself",
        ("2", "plur", ""): "yourselves",
        ("3", "sing", "masc"): "he him his himself",
        ("3", "sing", "fem"): "she her hers herself",
        ("3", "sing", "neut"): "it its itself",
        ("3", "plur", ""): "they them their theirs themselves",
    }.items()
    for word in listed.split()
}

# discourse markers that can replace each other
MARKER_SENSES = map_to_class(
    contrast="""however nevertheless nonetheless yet though although but while whereas even_so
    despite in_spite_of""",
    addition="moreover furthermore also besides additionally too in_addition as_well",
    result="therefore thus hence consequently so accordingly as_a_result",
    conjunction="and as_well_as along_with plus",
    cause="because since as due_to because_of owing_to",
)

# Contiguous groups that act as one word and that are not in WordNet.
FIXED_EXPRESSIONS = word_set(
    """no_one as_well_as as_well in_order_to due_to because_of according_to in_spite_of instead_of
    such_as out_of up_to at_least at_most more_than less_than no_longer of_course for_example
    for_instance in_front_of on_behalf_of in_addition in_addition_to as_a_result even_so a_lot
    a_few a_little a_lot_of a_great_deal along_with owing_to each_other one_another in_case
    per_cent so_that as_soon_as as_long_as as_far_as rather_than other_than prior_to thanks_to
    with_regard_to in_relation_to in_terms_of by_means_of in_accordance_with"""
)
