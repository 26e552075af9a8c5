"""The fit by files: questions and answers travel as signed and encrypted files."""
