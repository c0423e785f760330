CREATE TABLE `installation` (
	`id` text PRIMARY KEY NOT NULL,
	`instance_id` text NOT NULL,
	`revision` integer NOT NULL,
	`pruned_revision` integer NOT NULL,
	`created_at` integer NOT NULL
) STRICT;
CREATE TABLE `schema_migrations` (
	`version` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`checksum` text NOT NULL,
	`applied_at` integer NOT NULL
) STRICT;
CREATE TABLE `changes` (
	`revision` integer NOT NULL,
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`revision`, `kind`, `id`)
) STRICT;
CREATE TABLE `keyring` (
	`id` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`state` text NOT NULL,
	`sealed_by` text NOT NULL,
	`sealed` blob NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "keyring_purpose" CHECK(purpose IN ('data', 'api_key_pepper', 'audit_signing', 'fingerprint', 'cursor')),
	CONSTRAINT "keyring_state" CHECK(state IN ('current', 'previous', 'retired'))
) STRICT;
CREATE TABLE `audit_events` (
	`seq` integer PRIMARY KEY NOT NULL,
	`text` text NOT NULL,
	`hash` text NOT NULL,
	`organisation_id` text NOT NULL,
	`is_foreign` integer NOT NULL,
	`created_at` integer NOT NULL,
	`clock` integer NOT NULL,
	`method` text,
	`uri` text,
	`request_id` text,
	`user_type` text NOT NULL,
	`user_id` text NOT NULL,
	`workspace_id` text,
	`status` integer NOT NULL,
	`resource_type` text NOT NULL,
	`action` text NOT NULL,
	`resource_id` text,
	`client_ip` text,
	CONSTRAINT "audit_events_user_type_known" CHECK(user_type IN ('api_key', 'user', 'cli', 'system'))
) STRICT;
CREATE INDEX `audit_events_clock` ON `audit_events` (`clock`,`created_at`,`seq`);
CREATE INDEX `audit_events_foreign` ON `audit_events` (`is_foreign`,`seq`);
CREATE INDEX `audit_events_method` ON `audit_events` (`is_foreign`,`method`,`seq`);
CREATE INDEX `audit_events_uri` ON `audit_events` (`is_foreign`,`uri`,`seq`);
CREATE INDEX `audit_events_request` ON `audit_events` (`is_foreign`,`request_id`,`seq`);
CREATE INDEX `audit_events_user_type` ON `audit_events` (`is_foreign`,`user_type`,`seq`);
CREATE INDEX `audit_events_user` ON `audit_events` (`is_foreign`,`user_id`,`seq`);
CREATE INDEX `audit_events_workspace` ON `audit_events` (`is_foreign`,`workspace_id`,`seq`);
CREATE INDEX `audit_events_status` ON `audit_events` (`is_foreign`,`status`,`seq`);
CREATE INDEX `audit_events_resource_type` ON `audit_events` (`is_foreign`,`resource_type`,`seq`);
CREATE INDEX `audit_events_action` ON `audit_events` (`is_foreign`,`action`,`seq`);
CREATE INDEX `audit_events_resource` ON `audit_events` (`is_foreign`,`resource_id`,`seq`);
CREATE INDEX `audit_events_client` ON `audit_events` (`is_foreign`,`client_ip`,`seq`);
CREATE TABLE `audit_head` (
	`id` text PRIMARY KEY NOT NULL,
	`chain_id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`seq` integer NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`clock` integer NOT NULL,
	`pruned_seq` integer NOT NULL,
	`pruned_hash` text NOT NULL,
	`key_id` text NOT NULL,
	`signature` text NOT NULL
) STRICT;
CREATE TABLE `audit_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`public_key` text NOT NULL,
	`vouched_by` text,
	`voucher` text
) STRICT;
CREATE TABLE `organisations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`settings` text DEFAULT '{}' NOT NULL,
	`guardrails` text DEFAULT '{}' NOT NULL,
	`created_at` integer NOT NULL
) STRICT;
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`email` text NOT NULL,
	`first_name` text DEFAULT '' NOT NULL,
	`last_name` text DEFAULT '' NOT NULL,
	`role` text NOT NULL,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "users_role" CHECK(role IN ('owner', 'admin', 'member')),
	CONSTRAINT "users_status" CHECK(status IN ('active', 'removed'))
) STRICT;
CREATE UNIQUE INDEX `users_email` ON `users` (`organisation_id`,`email`) WHERE status = 'active';
CREATE TABLE `workspaces` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`icon` text,
	`description` text,
	`is_default` integer NOT NULL,
	`status` text NOT NULL,
	`defaults` text,
	`usage_limits` text,
	`rate_limits` text,
	`security_settings` text,
	`settings` text,
	`created_by` text,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "workspaces_status" CHECK(status IN ('active', 'archived'))
) STRICT;
CREATE UNIQUE INDEX `workspaces_slug` ON `workspaces` (`organisation_id`,`slug`);
CREATE TABLE `workspace_members` (
	`workspace_id` text NOT NULL,
	`user_id` text NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	PRIMARY KEY(`workspace_id`, `user_id`),
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "workspace_members_role" CHECK(role IN ('admin', 'manager', 'member'))
) STRICT;
CREATE INDEX `workspace_members_user` ON `workspace_members` (`user_id`);
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`workspace_id` text,
	`user_id` text,
	`accountable_user_id` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`description` text,
	`scopes` text NOT NULL,
	`digest` text,
	`previous_digest` text,
	`previous_digest_expires_at` integer,
	`masked` text NOT NULL,
	`creation_mode` text NOT NULL,
	`created_by_key_id` text,
	`expires_at` integer,
	`expires_at_text` text,
	`rate_limits` text,
	`usage_limits` text,
	`last_reset_at` integer,
	`defaults` text,
	`alert_emails` text,
	`rotation_policy` text,
	`next_rotation_at` integer,
	`rotation_due_recorded_at` integer,
	`expiry_recorded_at` integer,
	`last_used_at` integer,
	`deleted_at` integer,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`accountable_user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_type" CHECK(type IN ('organisation-service', 'workspace-service', 'workspace-user', 'system')),
	CONSTRAINT "api_keys_creation_mode" CHECK(creation_mode IN ('ui', 'api', 'auto'))
) STRICT;
CREATE UNIQUE INDEX `api_keys_digest` ON `api_keys` (`digest`);
CREATE UNIQUE INDEX `api_keys_previous_digest` ON `api_keys` (`previous_digest`);
CREATE INDEX `api_keys_workspace` ON `api_keys` (`workspace_id`);
CREATE INDEX `api_keys_user` ON `api_keys` (`user_id`);
CREATE INDEX `api_keys_next_rotation` ON `api_keys` (`next_rotation_at`);
CREATE INDEX `api_keys_expiry` ON `api_keys` (`expires_at`);
CREATE INDEX `api_keys_organisation` ON `api_keys` (`organisation_id`,`created_at`);
CREATE TABLE `invites` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`workspaces` text NOT NULL,
	`key_details` text NOT NULL,
	`first_name` text,
	`last_name` text,
	`token_digest` text NOT NULL,
	`status` text NOT NULL,
	`invited_by_key_id` text,
	`invited_by_user_id` text NOT NULL,
	`accepted_user_id` text,
	`accepted_at` integer,
	`expires_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "invites_role" CHECK(role IN ('admin', 'member')),
	CONSTRAINT "invites_status" CHECK(status IN ('pending', 'accepted', 'cancelled'))
) STRICT;
CREATE UNIQUE INDEX `invites_token` ON `invites` (`token_digest`);
CREATE INDEX `invites_organisation` ON `invites` (`organisation_id`,`created_at`);
CREATE TABLE `idempotent_answers` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`body_digest` text NOT NULL,
	`event` text NOT NULL,
	`answer` text,
	`sealed_answer` blob,
	`created_at` integer NOT NULL
) STRICT;
CREATE INDEX `idempotent_answers_created` ON `idempotent_answers` (`created_at`);
CREATE TABLE `collections` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`parent_collection_id` text,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`is_default` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
CREATE UNIQUE INDEX `collections_slug` ON `collections` (`slug`);
CREATE INDEX `collections_workspace` ON `collections` (`workspace_id`);
CREATE INDEX `collections_parent` ON `collections` (`parent_collection_id`);
CREATE TABLE `prompts` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`collection_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`default_version` integer NOT NULL,
	`latest_version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`collection_id`) REFERENCES `collections`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
CREATE UNIQUE INDEX `prompts_slug` ON `prompts` (`slug`);
CREATE INDEX `prompts_workspace` ON `prompts` (`workspace_id`,`last_updated_at`);
CREATE INDEX `prompts_collection` ON `prompts` (`collection_id`);
CREATE TABLE `prompt_versions` (
	`id` text PRIMARY KEY NOT NULL,
	`prompt_id` text NOT NULL,
	`number` integer NOT NULL,
	`template` text NOT NULL,
	`template_type` text NOT NULL,
	`is_raw` integer NOT NULL,
	`parameters` text NOT NULL,
	`functions` text,
	`tools` text,
	`tool_choice` text,
	`template_metadata` text NOT NULL,
	`model` text NOT NULL,
	`virtual_key` text,
	`ai_model_id` text,
	`finetune_id` text,
	`description` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`prompt_id`) REFERENCES `prompts`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "prompt_versions_template_type" CHECK(template_type IN ('chat', 'text'))
) STRICT;
CREATE UNIQUE INDEX `prompt_versions_number` ON `prompt_versions` (`prompt_id`,`number`);
CREATE TABLE `partials` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`collection_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`status` text NOT NULL,
	`default_version` integer NOT NULL,
	`latest_version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`collection_id`) REFERENCES `collections`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "partials_status" CHECK(status IN ('active', 'archived'))
) STRICT;
CREATE UNIQUE INDEX `partials_slug` ON `partials` (`slug`);
CREATE INDEX `partials_workspace` ON `partials` (`workspace_id`,`last_updated_at`);
CREATE INDEX `partials_collection` ON `partials` (`collection_id`);
CREATE TABLE `partial_versions` (
	`id` text PRIMARY KEY NOT NULL,
	`partial_id` text NOT NULL,
	`number` integer NOT NULL,
	`template` text NOT NULL,
	`description` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`partial_id`) REFERENCES `partials`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
CREATE UNIQUE INDEX `partial_versions_number` ON `partial_versions` (`partial_id`,`number`);
CREATE TABLE `prompt_partials` (
	`version_id` text NOT NULL,
	`partial_slug` text NOT NULL,
	PRIMARY KEY(`version_id`, `partial_slug`),
	FOREIGN KEY (`version_id`) REFERENCES `prompt_versions`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
CREATE INDEX `prompt_partials_slug` ON `prompt_partials` (`partial_slug`);
CREATE TABLE `labels` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`workspace_id` text,
	`scope_id` text NOT NULL,
	`name` text NOT NULL,
	`description` text,
	`color_code` text,
	`is_universal` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
CREATE UNIQUE INDEX `labels_name` ON `labels` (`scope_id`,`name`);
CREATE INDEX `labels_organisation` ON `labels` (`organisation_id`);
CREATE TABLE `prompt_labels` (
	`prompt_id` text NOT NULL,
	`label_id` text NOT NULL,
	`version_id` text NOT NULL,
	`assigned_at` integer NOT NULL,
	PRIMARY KEY(`prompt_id`, `label_id`),
	FOREIGN KEY (`prompt_id`) REFERENCES `prompts`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`label_id`) REFERENCES `labels`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`version_id`) REFERENCES `prompt_versions`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
CREATE INDEX `prompt_labels_label` ON `prompt_labels` (`label_id`);
