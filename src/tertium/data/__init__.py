"""Read files into values: test sets, human judgments and metric scores. Nothing is scored here.

Test data: `testset` (system outputs), `candidate_lists` (N-best lists), `challenge_sets` (pairs of
a better and a worse translation).

Human data share the interface in `human_data`. `judgments` are scores of translations and marked
errors (`ratings` standardizes and averages raw ones). `rankings` are pairwise comparisons, which
become system scores. `formats` has a module for each published format, and `human_data_files` reads
all of them and detects the format.

A folder of datasets: `dataset_folder`. Metric scores: `metric_scores`. `slices` groups segments.
Basics: `record_files` (files), `records` (column names), `item_names` (segment names).
"""
