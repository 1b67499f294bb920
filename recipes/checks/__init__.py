"""Tables that the checks of `tertium check` read, and their precision and recall."""
