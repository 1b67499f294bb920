def add_parser(s):
    return s.add_parser("cite")


def run(args):
    return 0
