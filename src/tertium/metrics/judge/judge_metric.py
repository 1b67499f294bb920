"""Judge: a language model behind an OpenAI-compatible server scores translations.

The model lists errors and gives a score (`esa`), gives a score only (`da`), or lists errors from
which the score is computed (`mqm`). Answers are cached one by one, so that a second run sends no
request. Address, concurrency and budget are settings of the run (`judge_run`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import MissingResourceError, UsageError, short_repr
from tertium.core.fields import Range
from tertium.core.runtime import progress_task
from tertium.core.scores import Scores
from tertium.core.segment import REQUIRED_INPUTS, Segment
from tertium.core.spans import Span
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.judge_run import (
    JudgeRun,
    current_run,
    estimate_tokens,
    has_enough_answers,
    token_cost,
)
from tertium.metrics.base.metric import NO_SCORE, NOTHING, Metric, distinct_segments
from tertium.metrics.base.scorer import check_same_inputs, flag_empty
from tertium.metrics.base.text_warnings import Flags
from tertium.metrics.judge import judge_answers
from tertium.metrics.judge.client import (
    MAX_MODEL_NAME,
    JudgeClient,
    Outcome,
    Question,
    is_model_name,
    read_url,
)
from tertium.metrics.judge.judge_answers import (
    PROTOCOLS,
    Answer,
    JudgeProtocol,
    PassResult,
    ProtocolName,
    SegmentResult,
    StoredAnswer,
    read_pass,
)
from tertium.metrics.judge.prompts import Prompt, bundled_prompt, read_prompt
from tertium.text.language_codes import parse_language_pair

NO_ANSWER = "no valid answer"
UNPLACED_QUOTE = "quote of the judge not in the text"
SAMPLING_TEMPERATURE = 0.7  # of several passes, unless a temperature is given
MESSAGE_TOKENS = 8  # added to each message by chat templates
COLUMNS = ("score", "segments", "answers", "input tokens", "output tokens")


@dataclass(frozen=True, kw_only=True)
class Judge(Metric):
    """The score of a language model that is asked to judge a translation; higher is better.

        esa, da:  mean over passes of the score that the model gives, 0 to 100
        mqm:      mean over passes of -sum of the weights of the errors, -25 to 0

    A segment without a valid answer has no score (NaN). The system score is the mean of the others,
    or NaN if fewer than `min_coverage` of the segments have a valid answer.

    Inputs: the source, references, or both.

    Settings:

    - `model`: name of the model on the server.
    - `protocol`: `esa`, `da` or `mqm`.
    - `against`: `source`, `reference`, `both`, or `auto` for all available inputs.
    - `lp`: language pair, such as `de-en`; the prompt then names the languages.
    - `context`: number of preceding segments of the document in the prompt.
    - `passes`: number of answers per segment, each with its own seed.
    - `temperature`: of sampling; by default 0, or 0.7 with several passes.
    - `retries`: how often to ask again after an invalid answer.
    - `max_tokens`: maximum length of an answer.
    - `min_coverage`: share of the segments that need a valid answer for a system score.
    - `prompt`: file with a prompt of your own (see the guide).

    Related metrics: `tertium-multi` needs no server and marks errors as well.
    """

    name: ClassVar[str] = "judge"
    title: ClassVar[str] = "Judge"
    decimals: ClassVar[int] = 2
    citation: ClassVar[str] = """@inproceedings{kocmi-federmann-2023-large,
  title = {Large Language Models Are State-of-the-Art Evaluators of Translation Quality},
  author = {Kocmi, Tom and Federmann, Christian},
  booktitle = {Proceedings of the 24th Annual Conference of the European Association for Machine
               Translation},
  year = {2023},
  pages = {193--203},
}"""

    model: str = ""
    protocol: ProtocolName = "esa"
    against: Literal["auto", "source", "reference", "both"] = "auto"
    lp: str = ""
    context: Annotated[int, Range(0, 100)] = 0
    passes: Annotated[int, Range(1, 1000)] = 1
    temperature: Annotated[float | None, Range(0, 2)] = None
    retries: Annotated[int, Range(0, 100)] = 1
    max_tokens: Annotated[int, Range(1, 1_000_000)] = 2048
    min_coverage: Annotated[float, Range(0, 1)] = 0.95
    prompt: str = ""

    def __post_init__(self) -> None:
        parse_language_pair(self.lp)
        if not (is_model_name(self.model) and self.prompt.isprintable()):
            raise UsageError(
                f"model={short_repr(self.model)}, prompt={short_repr(self.prompt)}: expected the "
                f"name of a model of at most {MAX_MODEL_NAME} characters and the name of a file, "
                "both in printable characters"
            )
        if self.passes > 1 and self.temperature == 0:
            raise UsageError(
                f"passes={self.passes} with temperature=0: all answers would be equal; omit "
                "temperature, or give a higher one"
            )
        if self.prompt:
            _ = self.template  # fail before files are read
        # an instance attribute: only a judge with context depends on it
        object.__setattr__(self, "reads_context", self.context > 0)

    @property
    def label(self) -> str:
        return f"Judge {self.protocol.upper()}" if self.protocol != "esa" else self.title

    @property
    def required_inputs(self) -> frozenset[str]:
        inputs = NOTHING if self.against == "auto" else REQUIRED_INPUTS[self.against]
        return inputs | {"context"} if self.context else inputs

    @property
    def worst_score(self) -> float:
        return self._protocol.worst_score

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (f"{self.model}+{self.template.id}",) if self.model else ()

    @cached_property
    def template(self) -> Prompt:
        """The prompt: bundled, or read from the file of `prompt`."""
        return read_prompt(self.prompt) if self.prompt else bundled_prompt(f"{self.protocol}.v1")

    @property
    def _protocol(self) -> JudgeProtocol:
        return PROTOCOLS[self.protocol]

    @property
    def _temperature(self) -> float:
        default = SAMPLING_TEMPERATURE if self.passes > 1 else 0.0
        return default if self.temperature is None else self.temperature

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if not self.model:
            raise MissingResourceError(
                "judge has no default model: give the name of a model on your server as "
                "judge:model=NAME, and the server with --judge-url URL"
            )
        read_url(current_run().server)  # fail before other metrics have done their work
        if self.against == "auto":
            check_same_inputs(self.name, segments)

    def adjust_scores(self, scores: Scores, segments: Sequence[Segment]) -> Scores:
        """Withhold the system score if too few answers are valid."""
        has_score = scores.statistics[:, COLUMNS.index("segments")] > 0
        is_asked = np.array([_needs_answer(segment) for segment in segments], dtype=bool)
        answered = int((has_score & is_asked).sum())
        total = int(is_asked.sum())
        if has_enough_answers(answered, total, self.min_coverage):
            return scores
        current_run().usage.too_few[self._coverage_key] = (answered, total)
        return replace(scores, reduce=_withhold_score, reduce_segments=self.reduce)

    @property
    def _coverage_key(self) -> tuple[str, float]:
        return self.spec, self.min_coverage

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        results = self._judge(segments, "none")
        served = sorted({p.answer.model for r in results for p in r.passes if p.answer.model})
        fields = {"model": self.model, "served": "+".join(served) or "unknown"}
        fields |= {"prompt": self.template.id, "against": self._input_mode(segments)}
        fields |= {"lp": self.lp} if self.lp else {}
        fields |= {"context": str(self.context)} if self.context else {}
        fields |= {"passes": str(self.passes), "temp": f"{self._temperature:g}"}
        return {k: v.replace(":", "-").replace("|", "-") for k, v in fields.items()}

    def _input_mode(self, segments: Sequence[Segment]) -> str:
        if self.against != "auto" or not segments:
            return self.against
        first = segments[0]
        return "source" if not first.references else "reference" if first.source is None else "both"

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([self._row(result) for result in self._judge(segments, "all")])

    def _row(self, result: SegmentResult) -> list[float]:
        """Return the statistics of a segment; without a score it has no weight in sums."""
        answers = [p.answer for p in result.passes]
        tokens = [sum(a.prompt_tokens for a in answers), sum(a.completion_tokens for a in answers)]
        score = [result.score, 1.0] if result.passes else [0.0, 0.0]
        return [*score, len(answers), *tokens]

    def reduce(self, totals: FloatArray) -> FloatArray:
        return divide(totals[..., 0], totals[..., 1])

    def usage(self, statistics: FloatArray) -> dict[str, float]:
        totals = dict(zip(COLUMNS, statistics.sum(axis=0).tolist(), strict=True))
        usage: dict[str, float] = {
            "answers": int(totals["answers"]),
            "prompt_tokens": int(totals["input tokens"]),
            "completion_tokens": int(totals["output tokens"]),
        }
        if price := current_run().server.price:
            usage["cost"] = token_cost(usage["prompt_tokens"], usage["completion_tokens"], price)
        return usage

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Also flag segments without a score, why, and quotes that are not in the text."""
        flags = super().flags(segments)
        for row, result in enumerate(self._judge(segments, "none")):
            kinds = [f"{NO_ANSWER}: {kind}" for kind in result.failures]
            kinds += [NO_SCORE] * (not result.passes)
            kinds += [UNPLACED_QUOTE] * any(p.unplaced for p in result.passes)
            for kind in kinds:
                flags.setdefault(kind, np.zeros(len(segments), dtype=np.bool_))[row] = True
        return flags

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        if not self.can_mark_errors:
            raise UsageError(f"{self.spec} gives no error spans: choose protocol=esa or mqm")
        return [result.spans() for result in self._judge(segments)]

    @property
    def can_mark_errors(self) -> bool:
        return "errors" in self._protocol.schema["properties"]

    @property
    def span_note(self) -> str:
        return "errors as quoted by the model; quotes that are not in the text are dropped"

    def spread(self, segments: Sequence[Segment]) -> FloatArray:
        """Return the standard deviation over passes of each segment, (n,); NaN without a score."""
        results = self._judge(segments)
        return np.array([r.spread if r.passes else np.nan for r in results])

    def explain_segment(self, segment: Segment) -> Explanation:
        (result,) = self._judge([segment])
        values = {"score": result.score} | ({"spread": result.spread} if self.passes > 1 else {})
        texts = self._texts(segment)
        sides = [("reference", text) for text in texts.get("references", ())]
        sides += [("source", texts["source"])] if "source" in texts else []
        return Explanation(
            metric=self.spec,
            score=result.score,
            comparisons=tuple(
                TextComparison(side=side, text=text, values=values)  # type: ignore[arg-type]
                for side, text in sides
            ),
            reasons=result.reasons(),
        )

    def plan(self, segments: Sequence[Segment]) -> dict[str, Any]:
        """Count the requests that scoring would send, and estimate their tokens."""
        self.check(segments)
        distinct, _ = distinct_segments(segments)
        questions = {q.key: q for s in distinct for q in self._questions(s)}
        cached = judge_answers.get_answers(questions, self._protocol)
        payloads = [q.payload for key, q in questions.items() if key not in cached]
        schema = estimate_tokens(json.dumps(self._protocol.schema))
        prompt_tokens = 0
        for payload in payloads:
            prompt_tokens += schema
            for message in payload["messages"]:
                prompt_tokens += estimate_tokens(message["content"]) + MESSAGE_TOKENS
        return {
            "metric": self.spec,
            "answers": len(questions),
            "cached": len(cached),
            "requests": len(payloads),
            "input tokens": prompt_tokens,
            "output tokens": self._protocol.answer_tokens * len(payloads),
        }

    def _texts(self, segment: Segment) -> dict[str, Any]:
        """Return the texts of a segment that the judge reads."""
        mode = self._input_mode([segment])
        texts: dict[str, Any] = {}
        if self.context and segment.context is not None:
            texts["context"] = [
                {"source": s.source, "translation": s.hypothesis}
                if mode != "reference" and s.source is not None
                else {"translation": s.hypothesis}
                for s in segment.context.before(self.context)
            ]
        if mode != "reference":
            texts["source"] = segment.source or ""
        if mode != "source":
            texts["references"] = list(segment.references)
        return {**texts, "translation": segment.hypothesis}

    def _questions(self, segment: Segment) -> list[Question]:
        """Return one question per pass; none for blank translations, whose score is fixed."""
        if not _needs_answer(segment):
            return []
        messages = self.template.render(self._texts(segment), self.lp)
        fixed = [self.protocol, messages, self._temperature, self.max_tokens]
        return [
            Question(
                key=json.dumps([self.model, seed, *fixed], ensure_ascii=False),
                payload={
                    "model": self.model,
                    "messages": messages,
                    "temperature": self._temperature,
                    "max_tokens": self.max_tokens,
                    "seed": seed,
                    "response_format": self._protocol.response_format,
                },
            )
            for seed in range(self.passes)
        ]

    def _judge(
        self, segments: Sequence[Segment], ask: Literal["all", "new", "none"] = "new"
    ) -> list[SegmentResult]:
        """Return the results of segments; ask the server for missing answers.

        Questions that failed before are "new" only in another run.
        """
        segment_questions = [self._questions(segment) for segment in segments]
        questions = {question.key: question for own in segment_questions for question in own}
        answers = judge_answers.get_answers(questions, self._protocol)
        run = current_run()
        failures = judge_answers.failures
        if ask == "all":
            run.usage.cached_answers += len(answers)
            failures = {}
        missing = [q for key, q in questions.items() if key not in answers and key not in failures]
        if missing and ask != "none":
            self._ask(missing, run)
            answers = judge_answers.get_answers(questions, self._protocol)
        results = [
            self._result(segment, [question.key for question in own], answers)
            for segment, own in zip(segments, segment_questions, strict=True)
        ]
        if ask != "none":
            answered = {zlib.crc32(r.key.encode()): bool(r.passes) for r in results if r.key}
            run.usage.answered.setdefault(self._coverage_key, {}).update(answered)
        return results

    def _ask(self, questions: Sequence[Question], run: JudgeRun) -> None:
        client = JudgeClient(run=run, protocol=self._protocol, retries=self.retries)
        with progress_task(f"{self.name}:model={self.model}", total=len(questions)) as advance:

            def store(question: Question, outcome: Outcome) -> None:
                if isinstance(outcome, str):
                    judge_answers.failures[question.key] = outcome
                else:
                    judge_answers.put_answer(question.key, outcome)
                advance(1)

            client.ask(questions, store)

    def _result(
        self,
        segment: Segment,
        keys: Sequence[str],
        answers: Mapping[str, tuple[StoredAnswer, Answer]],
    ) -> SegmentResult:
        worst = self._protocol.worst_score
        if not keys:
            is_worst = bool(flag_empty(self, [segment])[0])
            return SegmentResult("", [PassResult(worst if is_worst else self._protocol.best_score)])
        source = None if self._input_mode([segment]) == "reference" else segment.source
        passes = []
        kinds = []
        for key in keys:
            if key in answers:
                passes.append(read_pass(*answers[key], segment.hypothesis, source, worst))
            elif key in judge_answers.failures:
                kinds.append(judge_answers.failures[key])
        return SegmentResult(keys[0], passes, kinds)


def _needs_answer(segment: Segment) -> bool:
    """Return whether the model is asked; the score of a blank translation is fixed."""
    return bool(segment.hypothesis.strip())


def _withhold_score(totals: FloatArray) -> FloatArray:
    """Return NaN for each sum of statistics, in place of `Judge.reduce`."""
    return np.full(totals.shape[:-1], np.nan)
