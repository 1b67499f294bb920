def add_parser(s):
    return s.add_parser("list")


def run(args):
    return 0
