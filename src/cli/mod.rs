//! The command line: arguments, dispatch, and the commands that need files only.
