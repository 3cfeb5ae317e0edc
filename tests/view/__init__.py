"""Tests of the dashboard: drawings without an app, the log reader on files, the app with a pilot, snapshots."""
