"""Read files into values: test sets, human judgments and metric scores. Nothing is scored here.

Test data: `testset` (system outputs), `candidate_lists` (N-best lists), `challenge_sets` (pairs of
a better and a worse translation), `consistency` (checks of files and systems).

Human data share the interface in `human_data`. `judgments` are scores of translations (`ratings`
standardizes and averages raw ones). `rankings` are pairwise comparisons, turned into system scores
by `win_rates`. `error_annotations` are marked errors. `formats` has a module for each published
format, and `human_data_files` reads all of them and detects the format.

A folder of datasets: `dataset_folder`. Metric scores: `metric_scores`.

Tools: `slices` groups segments, `train_test_overlap` removes test segments from training data,
`segment_lookup` finds the segment of a judgment. Basics: `record_files` (files), `records` (column
names), `item_names` (segment names).
"""
