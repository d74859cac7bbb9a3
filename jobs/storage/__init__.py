"""Where artifacts are kept: a folder or an S3-compatible bucket, behind one interface (`base.Store`)."""
