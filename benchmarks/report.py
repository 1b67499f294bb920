"""A report of 11 systems x 3,004 segments: page size, and time until a browser shows it."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.corpus import wmt17
from tertium.evaluation.comparison import compare
from tertium.output.page.report import report_results

ROOT = Path(__file__).parents[1]
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
READY = "Number(document.documentElement.dataset.ready)"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--metrics", nargs="+", default=["bleu", "chrf", "ter"])
    parser.add_argument("--times", type=int, default=5, help="page loads (default: 5)")
    args = parser.parse_args(arguments)
    testset = wmt17(args.segments)
    results = compare(testset, args.metrics)
    count = len(testset) * len(testset.systems)
    print(f"{len(testset.systems)} systems x {len(testset)} segments: {' '.join(args.metrics)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        start = time.perf_counter()
        report_results(results, title="WMT17").write(path)
        seconds, size = time.perf_counter() - start, path.stat().st_size
        raw = sum(len(text.encode()) for texts in testset.systems.values() for text in texts)
        print(
            f"written in {seconds:.1f} s: {size / 1e6:.2f} MB, {size / count:.0f} bytes per "
            f"translation (the outputs alone are {raw / 1e6:.2f} MB of text)"
        )
        time_browser(path, args.times)


def time_browser(path: Path, times: int) -> None:
    """Open the page several times and time some interactions."""
    sys.path.insert(0, str(ROOT))
    from tests.output import chromium

    program = chromium.find_browser()
    if program is None:
        print("no Chromium: the page was not opened")
        return
    with chromium.browsing(program) as browser:
        browser.resize(1280, 900)
        load_times = []
        for _ in range(times):
            browser.send("Page.navigate", url="about:blank")
            browser.open(path)
            load_times.append((browser.evaluate(FIRST_PAINT), browser.evaluate(READY)))
        paint, ready = (statistics.median(values) for values in zip(*load_times, strict=True))
        print(
            f"first view after {paint / 1000:.2f} s, segments after {ready / 1000:.2f} s "
            f"(medians of {times})"
        )
        for name, action in ACTIONS.items():
            elapsed = browser.evaluate(
                f"(() => {{ const start = performance.now(); {action};"
                "return performance.now() - start; })()"
            )
            print(f"{name}: {elapsed:.0f} ms")


ACTIONS = {
    "where do the metrics disagree most": "document.querySelector('[data-preset=metrics]').click()",
    "where do two systems differ most": "document.querySelector('[data-preset=systems]').click()",
    "search": "document.querySelector('#query').value = 'government said';"
    "document.querySelector('#controls').requestSubmit()",
    "search again": "document.querySelector('#query').value = 'the president';"
    "document.querySelector('#controls').requestSubmit()",
}
