"""The half of the plug-in without a JVM: Arrow in, Arrow out."""
