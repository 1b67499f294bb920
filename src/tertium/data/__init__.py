"""Read files into values: test sets, human judgments and metric scores. Nothing is scored here.

Test data: `testset` (system outputs), `candidate_lists` (N-best lists), `challenge_sets` (pairs of
a better and a worse translation), `consistency` (checks of files and systems).

Human data share the interface in `human_data`. `judgments` are scores of translations (`ratings`
standardizes and averages raw ones). `rankings` are pairwise comparisons, read by `preferences` and
turned into system scores by `win_rates`. `human_score_tables` have a score for each system and
segment. `error_annotations` are marked errors, in the formats of `mqm_files`,
`annotation_campaigns` and `annotation_tools`. `human_data_files` reads all of these and detects the
format.

Published layouts: `mt_metrics_eval`, `wmt`, `wmt_quality_estimation`, and `tar_archive`. A folder
of datasets: `dataset_folder` and `dataset_summaries`. Metric scores: `metric_scores`.

Tools: `slices` groups segments, `train_test_overlap` removes test segments from training data,
`segment_lookup` finds the segment of a judgment. Basics: `formats` (files), `records` (column
names), `item_names` (segment names).
"""
