"""A hand-written Ray Data script: sacrebleu or bert-score on each batch.

Started by `benchmarks corpora ray`; not a benchmark itself.
"""

from __future__ import annotations

import sys
from typing import Any


class SacreChrF:
    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF

        self.metric = CHRF()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(batch["mt"], batch["ref"], strict=True)
        batch["chrf"] = [self.metric.sentence_score(mt, [ref]).score for mt, ref in pairs]
        return batch


class BertScore:
    def __init__(self) -> None:
        import bert_score

        from tertium.encoders.weight_files import find_installed_weights

        place = find_installed_weights("minilm")
        assert place is not None, "minilm is not installed"
        self.scorer = bert_score.BERTScorer(model_type=str(place[0]), num_layers=4)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        batch["f1"] = self.scorer.score(list(batch["mt"]), list(batch["ref"]))[2].tolist()
        return batch


def main(name: str, file: str, output: str) -> None:
    import ray

    ray.init(address=None, log_to_driver=False)
    scorer = SacreChrF if name == "sacrebleu" else BertScore
    rows = ray.data.read_json_object(file, lines=True, override_num_blocks=16)
    # half a CPU each, which leaves room for readers on two cores
    scored = rows.map_batches(scorer, batch_size=1024, concurrency=2, num_cpus=0.5)
    scored.write_parquet(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
