"""Entailment features: each fires on one pair of sentences and does not fire on another.

A pair is (hypothesis, premise).
"""

from __future__ import annotations

from collections import Counter

import pytest

from tertium.metrics.regression.entailment import FEATURES
from tertium.metrics.regression.entailment.feature_extraction import load_sentences
from tertium.metrics.regression.entailment.feature_types import (
    Pair,
    make_pairs,
)

SAME = ("The minister visited Paris.", "The minister visited Paris.")
Texts = tuple[str, str]

# feature: (pair on which it fires, pair on which it does not)
CASES: dict[str, tuple[Texts, Texts]] = {
    "modality.same": (
        ("He may come tomorrow.", "He might come tomorrow."),
        ("He comes tomorrow.", "He might come tomorrow."),
    ),
    "modality.root": (
        ("Peter is certainly from Lincolnshire.", "Peter is possibly from Lincolnshire."),
        ("Peter is from Lincolnshire.", "Peter is certainly from Lincolnshire."),
    ),
    "modality.other": (
        ("She says that he must leave.", "She says that he left."),
        ("She says that he left.", "She says that he left."),
    ),
    "modality.lost": (
        ("The bank failed.", "The bank could have failed."),
        ("The bank could have failed.", "The bank failed."),
    ),
    "modality.gained": (
        ("The bank could have failed.", "The bank failed."),
        ("The bank failed.", "The bank could have failed."),
    ),
    "modality.strength": (
        ("You must pay the bill.", "You may pay the bill."),
        ("You may pay the bill.", "You pay the bill."),
    ),
    "modality.condition": (
        ("If the army attacks, the rebels leave.", "The army attacks and the rebels leave."),
        ("If the army attacks, they leave.", "If the army attacks, they leave."),
    ),
    "factivity.same": (
        ("He knows that the bank failed.", "He realizes that the bank failed."),
        ("The bank failed.", "He realizes that the bank failed."),
    ),
    "factivity.differs": (
        ("He knows that the bank failed.", "He believes that the bank failed."),
        ("He knows that the bank failed.", "He discovered that the bank failed."),
    ),
    "factivity.asserted": (
        ("The bank failed yesterday.", "He believes that the bank failed yesterday."),
        ("He believes that the bank failed.", "He believes that the bank failed."),
    ),
    "factivity.implicative": (
        ("The team managed to reach the summit.", "The team failed to reach the summit."),
        ("The team reached the summit.", "The team managed to reach the summit."),
    ),
    "polarity.same": (
        ("The virus did not infect anybody.", "No one was infected by the virus."),
        ("The virus infected somebody.", "No one was infected by the virus."),
    ),
    "polarity.root": (
        ("The virus infected somebody.", "No one was infected by the virus."),
        ("The virus did not infect anybody.", "No one was infected by the virus."),
    ),
    "polarity.other": (
        ("He says that the army did not attack.", "He says that the army attacked."),
        ("He says that the army attacked.", "He says that the army attacked."),
    ),
    "polarity.negations": (
        ("He never came.", "He came."),
        ("He came.", "He never came."),
    ),
    "polarity.licensed": (
        ("Today I will face this reality.", "I shall face that fact today."),
        ("He did not buy an animal.", "He did not buy a dog."),
    ),
    "polarity.unlicensed": (
        ("He did not buy an animal.", "He did not buy a dog."),
        ("He bought an animal.", "He bought a dog."),
    ),
    "quantifier.same": (
        ("All workers left.", "All workers left the building."),
        ("Some workers left.", "All workers left."),
    ),
    "quantifier.weaker": (
        ("Some workers left.", "All workers left."),
        ("All workers left.", "Some workers left."),
    ),
    "quantifier.opposed": (
        ("No workers left.", "Some workers left."),
        ("All workers left.", "Some workers left."),
    ),
    "quantifier.missing": (
        ("Many workers left.", "The workers left."),
        ("The workers left.", "Many workers left."),
    ),
    "definiteness.differs": (
        ("A minister resigned.", "The minister resigned."),
        ("The minister resigned.", "The minister resigned."),
    ),
    "lexical.synonym": (
        ("The car stopped.", "The automobile stopped."),
        ("The car stopped.", "The car stopped."),
    ),
    "lexical.antonym": (
        ("The soup was hot.", "The soup was cold."),
        ("The soup was hot.", "The soup was hot."),
    ),
    "lexical.derivation": (
        ("They discussed the invasion.", "They discussed how the army would invade."),
        ("They discussed the invasion.", "They discussed the invasion."),
    ),
    "lexical.sibling": (
        ("He bought a knife.", "He bought a sword."),
        ("He bought a knife.", "He bought a knife."),
    ),
    "lexical.distributional": (
        ("The minister praised the president.", "The minister praised the parliament."),
        ("The minister praised the president.", "The minister praised the president."),
    ),
    "lexical.inflection": (
        ("He visits the castle.", "He visited the castle."),
        ("He visited the castle.", "He visited the castle."),
    ),
    "lexical.kind": (
        ("They discussed the invasion.", "They discussed how the army would invade."),
        ("They discussed the invasion.", "They discussed the invasion."),
    ),
    "tense.root": (
        ("The company will close the factory.", "The company closed the factory."),
        ("The company closed the factory.", "The company closed the factory."),
    ),
    "tense.other": (
        ("He says that prices will rise.", "He says that prices rose."),
        ("He says that prices rose.", "He says that prices rose."),
    ),
    "tense.aspect": (
        ("He is reading the book.", "He reads the book."),
        ("He reads the book.", "He reads the book."),
    ),
    "number.differs": (
        ("The worker left.", "The workers left."),
        ("The workers left.", "The workers left."),
    ),
    "degree.differs": (
        ("He has a bigger house.", "He has a big house."),
        ("He has a bigger house.", "He has a bigger house."),
    ),
    "unaligned.noun": (("He sold the bicycle.", "He sold."), ("He sold it.", "He sold.")),
    "unaligned.name": (("Angela visited the castle.", "Visit the castle."), SAME),
    "unaligned.verb": (("He shouted and left.", "He left."), SAME),
    "unaligned.quality": (("He bought a green bicycle.", "He bought a bicycle."), SAME),
    "unaligned.number": (("He bought 20 bicycles.", "He bought bicycles."), SAME),
    "unaligned.unknown": (("He bought a Fahrradschloss.", "He bought."), SAME),
    "unaligned.function": (("He went to the castle.", "He visited castles."), SAME),
    "unaligned.only_function": (
        ("The minister has visited Paris.", "The minister visited Paris."),
        ("The minister secretly visited Paris.", "The minister visited Paris."),
    ),
    "unaligned.root": (("He devoured the apple.", "The apple was green."), SAME),
    "unaligned.subject": (("The gardener left quickly.", "Leave quickly."), SAME),
    "unaligned.agent": (
        (
            "Three aid workers were kidnapped by pirates.",
            "Three aid workers were kidnapped.",
        ),
        (
            "Three aid workers were kidnapped by pirates.",
            "Pirates kidnapped three aid workers.",
        ),
    ),
    "unaligned.object": (("He painted the bicycle.", "He painted."), SAME),
    "unaligned.time": (("He left on 5 May 2016.", "He left."), SAME),
    "unaligned.place": (("He works in Paris.", "He works."), SAME),
    "unaligned.adjunct": (("He works with a hammer.", "He works."), SAME),
    "unaligned.modifier": (
        ("The old minister visited Paris.", "The minister visited Paris."),
        SAME,
    ),
    "unaligned.apposition": (
        ("Smith, the dentist, visited Paris.", "Smith visited Paris."),
        ("Smith, the dentist, visited Paris.", "Smith, the dentist, visited Paris."),
    ),
    "unaligned.clause": (
        ("The man who stole the bicycle left.", "The man left."),
        ("The man who stole the bicycle left.", "The man who stole the bicycle left."),
    ),
    "unaligned.negation": (("He did not leave.", "He did leave."), SAME),
    "unaligned.phrase": (
        ("He left with the green bicycle.", "He left."),
        ("He left with the green bicycle.", "He left with the green bicycle."),
    ),
    "person.kept": (
        ("Barack Obama spoke.", "Barack Obama spoke yesterday."),
        ("The president spoke.", "Barack Obama spoke."),
    ),
    "person.changed": (
        ("Barack Obama visited Rome.", "George Bush visited Rome."),
        ("Barack Obama visited Rome.", "Barack Obama visited Rome."),
    ),
    "person.missing": (
        ("The book by Barack Obama is long.", "The book is long."),
        ("The book by Barack Obama is long.", "The book by Barack Obama is long."),
    ),
    "place.kept": (
        ("He lives in France.", "He lives in France now."),
        ("He lives there.", "He lives in France."),
    ),
    "place.changed": (
        ("He lives in France.", "He lives in Germany."),
        ("He lives in France.", "He lives in France."),
    ),
    "place.missing": (
        ("He lives in France.", "He lives."),
        ("He lives in France.", "He lives in France."),
    ),
    "organisation.kept": (
        ("Microsoft sold the company.", "Microsoft sold the firm."),
        ("They sold the company.", "Microsoft sold the company."),
    ),
    "organisation.lost": (
        ("Microsoft sold the company.", "He sold the company."),
        ("Microsoft sold the company.", "Microsoft sold the firm."),
    ),
    "date.kept": (
        ("He left on 5 May 2016.", "He left on May 5, 2016."),
        ("He left on 6 May 2016.", "He left on May 5, 2016."),
    ),
    "date.changed": (
        ("He left on 6 May 2016.", "He left on May 5, 2016."),
        ("He left on 5 May 2016.", "He left on May 5, 2016."),
    ),
    "date.missing": (
        ("He left on 5 May 2016.", "He left."),
        ("He left on 5 May 2016.", "He left on May 5, 2016."),
    ),
    "amount.kept": (
        ("India buys 1,000 tanks.", "India buys a thousand tanks."),
        ("India buys 1,000 tanks.", "India buys 200 tanks."),
    ),
    "amount.changed": (
        ("India buys 1,000 tanks.", "India buys 200 tanks."),
        ("India buys 1,000 tanks.", "India buys a thousand tanks."),
    ),
    "amount.missing": (
        ("India buys 1,000 tanks.", "India buys tanks."),
        ("India buys tanks.", "India buys 1,000 tanks."),
    ),
    "pronoun.kept": (
        ("She left her house.", "She left her home."),
        ("She left the house.", "They left the house."),
    ),
    "pronoun.changed": (
        ("She left the house.", "They left the house."),
        ("She left the house.", "She left the house."),
    ),
    "root.kept": (
        ("The army attacked the town.", "The army attacked the city."),
        ("The army says it attacked.", "The attack was reported."),
    ),
    "root.elsewhere": (
        ("The army attacked the town.", "He said that the army attacked the town."),
        ("The army attacked the town.", "The army attacked the city."),
    ),
    "root.poor": (
        ("The army occupied the town.", "The army captured the town."),
        ("The army attacked the town.", "The army attacked the town."),
    ),
    "root.kind": (
        ("An attack on the town.", "The army attacked the town."),
        ("The army attacked the town.", "The army attacked the city."),
    ),
    "verb.kept": (
        ("The army attacked the town.", "The army attacked the city."),
        ("The army left the town.", "The army attacked the town."),
    ),
    "subject.kept": (
        ("Pirates kidnapped three aid workers.", "Three aid workers were kidnapped by pirates."),
        ("Three aid workers kidnapped pirates.", "Three aid workers were kidnapped by pirates."),
    ),
    "subject.changed": (
        ("Soldiers kidnapped the workers.", "Pirates kidnapped the workers."),
        ("Pirates kidnapped the workers.", "The workers were kidnapped by pirates."),
    ),
    "subject.missing": (
        ("Three aid workers were kidnapped.", "Three aid workers were kidnapped by pirates."),
        ("Pirates kidnapped three aid workers.", "Three aid workers were kidnapped by pirates."),
    ),
    "object.kept": (
        ("Pirates kidnapped three aid workers.", "Three aid workers were kidnapped by pirates."),
        ("Three aid workers kidnapped pirates.", "Three aid workers were kidnapped by pirates."),
    ),
    "object.changed": (
        ("Pirates kidnapped the teachers.", "Pirates kidnapped the sailors."),
        ("Pirates kidnapped the sailors.", "Pirates kidnapped the sailors."),
    ),
    "object.missing": (
        ("He painted.", "He painted the bicycle."),
        ("He painted the bicycle.", "He painted the bicycle."),
    ),
    "argument.swapped": (
        ("The dog bit the man.", "The man bit the dog."),
        ("The man was bitten by the dog.", "The dog bit the man."),
    ),
    "passive.kept": (
        ("The virus did not infect anybody.", "No one was infected by the virus."),
        ("The virus infected Peter.", "The virus infected Peter."),
    ),
    "passive.wrong": (
        ("Three aid workers kidnapped pirates.", "Three aid workers were kidnapped by pirates."),
        ("Pirates kidnapped three aid workers.", "Three aid workers were kidnapped by pirates."),
    ),
    "adjunct.kept": (
        ("He works with a hammer.", "He works with a hammer."),
        ("He works.", "He works with a hammer."),
    ),
    "adjunct.moved": (
        ("The man from Paris saw the bridge.", "The man saw the bridge in Paris."),
        ("He works with a hammer.", "He works with a hammer."),
    ),
    "preposition.differs": (
        ("He walked to the castle.", "He walked from the castle."),
        ("He walked to the castle.", "He walked to the castle."),
    ),
    "modifier.kept": (
        ("The green bicycle is old.", "The green bicycle is new."),
        ("The bicycle is old.", "The bicycle is green."),
    ),
    "modifier.moved": (
        ("The green bicycle has a bell.", "The bicycle has a green bell."),
        ("The green bicycle has a bell.", "The green bicycle has a bell."),
    ),
    "relation.changed": (
        ("The dog bit the man.", "The man bit the dog."),
        ("The dog bit the man.", "The dog bit the man."),
    ),
    "relation.reversed": (
        ("The queen of the country left.", "The country of the queen left."),
        ("The queen of the country left.", "The queen of the country left."),
    ),
    "conjunct.kept": (
        ("Cats and dogs sleep.", "Cats and dogs sleep."),
        ("Cats sleep.", "Cats and dogs sleep."),
    ),
    "clause.kept": (
        ("He said that the army attacked.", "He said that the army attacked yesterday."),
        ("The army attacked.", "He said that the army attacked."),
    ),
    "clause.promoted": (
        ("He said that the army attacked.", "The army attacked."),
        ("He said that the army attacked.", "He said that the army attacked."),
    ),
    "prominent.moved": (
        (
            "The castle fell.",
            "He said that they thought that the people who lived near the castle left.",
        ),
        ("The castle fell.", "The castle fell yesterday."),
    ),
    "broken.no_verb": (
        ("The attack by the army on town.", "The army attacked the town."),
        ("The army attacked the town.", "The attack by the army on town."),
    ),
    "broken.loose": (
        ("Attack town. Army the. Yesterday.", "The army attacked the town yesterday."),
        ("The army attacked the town yesterday.", "The army attacked the town yesterday."),
    ),
}

# quality measure: (pair with the higher value, pair with the lower value)
WORSE = ("The minister ate an apple.", "The minister visited Paris.")
QUALITY_CASES: dict[str, tuple[Texts, Texts]] = {
    "alignment.score": (SAME, WORSE),
    "alignment.content": (SAME, WORSE),
    "alignment.prominence": (SAME, WORSE),
    "alignment.identical": (SAME, WORSE),
    "alignment.edges": (SAME, WORSE),
    "prominent.kept": (SAME, WORSE),
    "alignment.function": (SAME, ("It is what he does to it.", "Minister visited Paris.")),
    "alignment.order": (
        ("He sold the old car in Paris.", "He sold the old car in Paris."),
        ("In Paris the car he sold old.", "He sold the old car in Paris."),
    ),
    "alignment.shared": (("Paris Paris Paris.", "The minister visited Paris."), SAME),
}


@pytest.fixture(scope="module", autouse=True)
def parse_all_sentences() -> None:
    """Parse all sentences in one batch."""
    cases = (*CASES.values(), *QUALITY_CASES.values())
    load_sentences([text for case in cases for texts in case for text in texts])


def make_pair(texts: Texts) -> Pair:
    hypothesis, premise = (load_sentences(texts)[text] for text in texts)
    return make_pairs(hypothesis, premise)[0]


def test_every_feature_has_a_case() -> None:
    assert set(CASES) | set(QUALITY_CASES) == set(FEATURES)
    assert not set(CASES) & set(QUALITY_CASES)
    assert {name for name, feature in FEATURES.items() if feature.template == "-"} == set(
        QUALITY_CASES
    )


def test_groups_have_the_published_sizes() -> None:
    # Pado et al. 2009, figure 2
    sizes = Counter(feature.group for feature in FEATURES.values())
    assert sizes == {
        "alignment": 8,
        "compatibility": 34,
        "insertions": 20,
        "reference": 16,
        "structure": 28,
    }


@pytest.mark.parametrize("name", CASES)
def test_feature_fires(name: str) -> None:
    feature, pair = FEATURES[name], make_pair(CASES[name][0])
    assert feature.find(pair), pair.alignment
    assert feature.value(pair) > 0
    for direction in ("forward", "backward"):
        assert all("{" not in s and "''" not in s for s in feature.describe(pair, direction))


@pytest.mark.parametrize("name", CASES)
def test_feature_does_not_fire(name: str) -> None:
    feature, pair = FEATURES[name], make_pair(CASES[name][1])
    assert not feature.find(pair)
    assert feature.value(pair) == 0.0


@pytest.mark.parametrize("name", QUALITY_CASES)
def test_quality_measure_is_higher_for_the_better_pair(name: str) -> None:
    high, low = (FEATURES[name].value(make_pair(texts)) for texts in QUALITY_CASES[name])
    assert 0 <= low < high <= 1
