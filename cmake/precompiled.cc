// Empty: the source of the target that owns the precompiled headers (WeftTargets.cmake).
