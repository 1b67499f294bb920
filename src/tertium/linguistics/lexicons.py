"""Closed lists of English words that change what follows from a sentence.

Entries are lemmas in lower case, multi-words joined by underscores. The lists are short and
hand-made on purpose: who negates, who doubts, who knows, who counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Modality = Literal["actual", "certain", "probable", "possible", "necessary", "hypothetical"]
Quantifier = Literal["all", "most", "many", "some", "few", "none"]
Attitude = Literal["factive", "report", "belief", "wish", "positive", "negative"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _by_class(**classes: str) -> Mapping[str, Any]:
    return {word: name for name, words in classes.items() for word in words.split()}


NEGATIONS = _words(
    "not n't never neither nor no none nobody nothing nowhere no_one no_longer without"
)
NEGATIVE_PRONOUNS = _words("nobody nothing none no_one neither")
NEGATIVE_DETERMINERS = _words("no neither")

MODAL_VERBS: Mapping[str, Modality] = {
    "can": "possible", "could": "possible", "may": "possible", "might": "possible",
    "must": "necessary", "should": "necessary", "ought": "necessary", "need": "necessary",
    "would": "hypothetical",
}  # fmt: skip
FUTURE_AUXILIARIES = _words("will shall 'll wo sha")
SEMI_MODALS: Mapping[str, Modality] = {  # verbs and adjectives that take an infinitive
    "have": "necessary", "need": "necessary", "oblige": "necessary", "require": "necessary",
    "force": "necessary", "able": "possible", "possible": "possible", "likely": "probable",
    "unlikely": "possible", "supposed": "necessary", "suppose": "necessary", "seem": "probable",
    "appear": "probable", "allow": "possible", "permit": "possible", "enable": "possible",
    "bind": "certain", "sure": "certain", "certain": "certain", "necessary": "necessary",
}  # fmt: skip
MODAL_ADVERBS: Mapping[str, Modality] = {
    "certainly": "certain", "surely": "certain", "definitely": "certain", "undoubtedly": "certain",
    "clearly": "certain", "obviously": "certain", "indeed": "certain", "of_course": "certain",
    "doubtless": "certain", "inevitably": "certain", "undeniably": "certain",
    "probably": "probable", "likely": "probable", "presumably": "probable",
    "apparently": "probable", "seemingly": "probable", "supposedly": "probable",
    "allegedly": "probable", "reportedly": "probable",
    "possibly": "possible", "perhaps": "possible", "maybe": "possible", "potentially": "possible",
    "conceivably": "possible", "perchance": "possible",
    "necessarily": "necessary",
}  # fmt: skip
CONDITIONALS = _words("if unless whether provided assuming lest in_case otherwise")

ATTITUDES: Mapping[str, Attitude] = _by_class(
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

QUANTIFIERS: Mapping[str, Quantifier] = {
    "all": "all", "every": "all", "each": "all", "both": "all", "everyone": "all",
    "everybody": "all", "everything": "all", "always": "all", "entire": "all", "whole": "all",
    "most": "most", "majority": "most", "mostly": "most", "usually": "most",
    "many": "many", "much": "many", "numerous": "many", "a_lot": "many", "lot": "many",
    "often": "many", "frequently": "many", "a_great_deal": "many", "plenty": "many",
    "some": "some", "several": "some", "any": "some", "someone": "some", "somebody": "some",
    "something": "some", "anyone": "some", "anybody": "some", "anything": "some",
    "sometimes": "some", "a_few": "some", "a_little": "some", "various": "some",
    "few": "few", "little": "few", "rarely": "few", "seldom": "few", "hardly": "few",
    "no": "none", "none": "none", "nobody": "none", "nothing": "none", "no_one": "none",
    "never": "none", "neither": "none",
}  # fmt: skip
QUANTIFIER_ORDER: tuple[Quantifier, ...] = ("none", "few", "some", "many", "most", "all")

# Words that turn "more general" into "does not follow": their scope is downward monotone.
DOWNWARD = _words(
    "not n't no never nobody nothing none no_one neither nor without few hardly barely scarcely "
    "rarely seldom if unless doubt deny refuse fail avoid prevent forbid lack reject every all each"
)

INDEFINITE_PEOPLE = _words(
    "anybody anyone somebody someone nobody no_one everybody everyone people person man one"
)
INDEFINITE_THINGS = _words("anything something nothing everything thing")

# person, number, gender; an empty field is left open
PRONOUNS: Mapping[str, tuple[str, str, str]] = {
    "i": ("1", "sing", ""), "me": ("1", "sing", ""), "my": ("1", "sing", ""),
    "mine": ("1", "sing", ""), "myself": ("1", "sing", ""),
    "we": ("1", "plur", ""), "us": ("1", "plur", ""), "our": ("1", "plur", ""),
    "ours": ("1", "plur", ""), "ourselves": ("1", "plur", ""),
    "you": ("2", "", ""), "your": ("2", "", ""), "yours": ("2", "", ""),
    "yourself": ("2", "sing", ""), "yourselves": ("2", "plur", ""),
    "he": ("3", "sing", "masc"), "him": ("3", "sing", "masc"), "his": ("3", "sing", "masc"),
    "himself": ("3", "sing", "masc"),
    "she": ("3", "sing", "fem"), "her": ("3", "sing", "fem"), "hers": ("3", "sing", "fem"),
    "herself": ("3", "sing", "fem"),
    "it": ("3", "sing", "neut"), "its": ("3", "sing", "neut"), "itself": ("3", "sing", "neut"),
    "they": ("3", "plur", ""), "them": ("3", "plur", ""), "their": ("3", "plur", ""),
    "theirs": ("3", "plur", ""), "themselves": ("3", "plur", ""),
}  # fmt: skip

# discourse markers that can stand for each other
MARKER_SENSES: Mapping[str, str] = _by_class(
    contrast="""however nevertheless nonetheless yet though although but while whereas even_so
    despite in_spite_of""",
    addition="moreover furthermore also besides additionally too in_addition as_well",
    result="therefore thus hence consequently so accordingly as_a_result",
    conjunction="and as_well_as along_with plus",
    cause="because since as due_to because_of owing_to",
)

# Contiguous groups that act as one word and that a dictionary of nouns and verbs does not list.
FIXED_EXPRESSIONS = _words(
    """no_one as_well_as as_well in_order_to due_to because_of according_to in_spite_of instead_of
    such_as out_of up_to at_least at_most more_than less_than no_longer of_course for_example
    for_instance in_front_of on_behalf_of in_addition in_addition_to as_a_result even_so a_lot
    a_few a_little a_lot_of a_great_deal along_with owing_to each_other one_another in_case
    per_cent so_that as_soon_as as_long_as as_far_as rather_than other_than prior_to thanks_to
    with_regard_to in_relation_to in_terms_of by_means_of in_accordance_with"""
)
