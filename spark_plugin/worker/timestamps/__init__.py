"""The timestamps of a side: what `left_time` and `right_time` may be, a file for each model.

`names.py` says what all of them have in common before a table is known, `columns.py` what they have
after, `models.py` what the shapes of events mean wherever there are no columns any more.
"""
