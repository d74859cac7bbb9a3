"""What the tables promise: checks, unique keys, and the partial indexes of claim, reap and purge."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("jobs", "0001_tables")]

    operations = [
        migrations.AddIndex(
            model_name='backupjob',
            index=models.Index(fields=['user', '-created_at'], name='backup_jobs_user'),
        ),
        migrations.AddIndex(
            model_name='backupjob',
            index=models.Index(models.F('database'), models.OrderBy(models.F('completed_at'), descending=True), name='backup_jobs_database'),
        ),
        migrations.AddConstraint(
            model_name='backupjob',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'running', 'completed', 'failed', 'cancelled'])), name='backup_jobs_status'),
        ),
        migrations.AddConstraint(
            model_name='backupjob',
            constraint=models.UniqueConstraint(fields=('schedule_id', 'slot'), name='backup_jobs_schedule_slot'),
        ),
        migrations.AddConstraint(
            model_name='backupjob',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'completed'), _negated=True), models.Q(('sha256__isnull', False), ('size__gt', 0), ('storage_key__isnull', False)), _connector='OR'), name='backup_jobs_completed_is_stored'),
        ),
        migrations.AddIndex(
            model_name='migrationjob',
            index=models.Index(fields=['user', '-created_at'], name='migration_jobs_user'),
        ),
        migrations.AddConstraint(
            model_name='migrationjob',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'running', 'completed', 'failed', 'cancelled'])), name='migration_jobs_status'),
        ),
        migrations.AddIndex(
            model_name='queuedjob',
            index=models.Index(models.F('queue'), models.F('run_at'), models.F('created_at'), condition=models.Q(('status', 'pending')), name='job_queue_claim'),
        ),
        migrations.AddIndex(
            model_name='queuedjob',
            index=models.Index(models.F('heartbeat_at'), condition=models.Q(('status', 'active')), name='job_queue_reap'),
        ),
        migrations.AddIndex(
            model_name='queuedjob',
            index=models.Index(models.F('completed_at'), condition=models.Q(('completed_at__isnull', False)), name='job_queue_purge'),
        ),
        migrations.AddIndex(
            model_name='queuedjob',
            index=models.Index(fields=['user', 'created_at'], name='job_queue_user'),
        ),
        migrations.AddConstraint(
            model_name='queuedjob',
            constraint=models.CheckConstraint(condition=models.Q(('queue__in', ['backup', 'restore', 'migration'])), name='job_queue_queue'),
        ),
        migrations.AddConstraint(
            model_name='queuedjob',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'active', 'completed', 'failed', 'cancelled'])), name='job_queue_status'),
        ),
        migrations.AddConstraint(
            model_name='queuedjob',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'active'), _negated=True), models.Q(('claim_id__isnull', False), ('heartbeat_at__isnull', False), ('locked_by__isnull', False)), _connector='OR'), name='job_queue_active_is_claimed'),
        ),
        migrations.AddConstraint(
            model_name='queuedjob',
            constraint=models.UniqueConstraint(fields=('schedule_id', 'slot'), name='job_queue_schedule_slot'),
        ),
        migrations.AddConstraint(
            model_name='storage',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['folder', 's3'])), name='storages_kind'),
        ),
        migrations.AddConstraint(
            model_name='storage',
            constraint=models.CheckConstraint(condition=models.Q(('origin__in', ['built_in', 'environment', 'saved'])), name='storages_origin'),
        ),
        migrations.AddConstraint(
            model_name='storage',
            constraint=models.UniqueConstraint(fields=('user', 'name'), name='storages_name_per_user', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='storage',
            constraint=models.UniqueConstraint(condition=models.Q(('origin__in', ['built_in', 'environment'])), fields=('origin',), name='storages_one_of_each_origin'),
        ),
        migrations.AddConstraint(
            model_name='database',
            constraint=models.UniqueConstraint(fields=('user', 'name'), name='databases_name_per_user'),
        ),
        migrations.AddIndex(
            model_name='backupcopy',
            index=models.Index(condition=models.Q(('state__in', ['writing', 'failed', 'deleting'])), fields=['next_attempt_at'], name='backup_copies_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='backupcopy',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['writing', 'good', 'failed', 'deleting'])), name='backup_copies_state'),
        ),
        migrations.AddConstraint(
            model_name='backupcopy',
            constraint=models.UniqueConstraint(fields=('storage', 'storage_key'), name='backup_copies_key'),
        ),
        migrations.AddConstraint(
            model_name='upload',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['writing', 'good', 'failed', 'deleting'])), name='uploads_state'),
        ),
        migrations.AddIndex(
            model_name='restorejob',
            index=models.Index(fields=['user', '-created_at'], name='restore_jobs_user'),
        ),
        migrations.AddConstraint(
            model_name='restorejob',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'running', 'completed', 'failed', 'cancelled'])), name='restore_jobs_status'),
        ),
    ]
