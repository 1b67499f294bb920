def add_parser(s):
    return s.add_parser("compare")


def run(args):
    return 0
