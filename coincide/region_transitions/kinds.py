"""Region transition events (section 6.2 of the BMQ paper), as numbers and as words."""

from __future__ import annotations

STAYS = 2
"""Added to the kind of the first event (`coincide.borders.crossings`) where none followed in time."""

TRANSITIONS = ("O>I", "I>O", "O>!I", "I>!O")
"""The word for each kind, in column `transition`: the paper's O▷I, I▷O, O▷¬I and I▷¬O."""
