"""What all families of metrics share: what a metric and a ranker are, matching, links, columns."""
