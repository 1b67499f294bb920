"""Present results as tables, charts and HTML reports."""
