"""Which of two translations is better, given the reference (Guzmán et al. 2015)."""
