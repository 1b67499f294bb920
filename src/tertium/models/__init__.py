"""What a trained thing is: a folder of settings and weights, and the loop that makes one."""
