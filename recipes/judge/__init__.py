"""A language model on this machine as a judge: demo, and measured prompt injections."""
