"""Causality through a bounded window: policies that say which tuple goes, what is kept, what is learnt."""
