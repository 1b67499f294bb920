def add_parser(s):
    return s.add_parser("score")


def run(args):
    return 0
