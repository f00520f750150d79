"""Questions with data of their own, each with an oracle in plain Python; tests ask a few, the hunt many.

Each module has `wrong`, which draws a case, joins it, and says what is wrong with the answer, or None.
"""
