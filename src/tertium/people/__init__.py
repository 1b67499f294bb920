"""The annotation server: raters judge the translations of a campaign in a browser."""
