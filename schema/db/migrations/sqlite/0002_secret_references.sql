CREATE TABLE `secret_references` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`description` text,
	`manager_type` text NOT NULL,
	`auth_config` blob NOT NULL,
	`secret_path` text NOT NULL,
	`secret_key` text,
	`allow_all_workspaces` integer NOT NULL,
	`tags` text,
	`cache_seconds` integer,
	`revision` integer NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_updated_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "secret_references_manager_type" CHECK(manager_type IN ('aws_sm', 'azure_kv', 'hashicorp_vault'))
) STRICT;
CREATE UNIQUE INDEX `secret_references_slug` ON `secret_references` (`organisation_id`,`slug`);
CREATE INDEX `secret_references_created` ON `secret_references` (`organisation_id`,`created_at`);
CREATE TABLE `secret_reference_workspaces` (
	`reference_id` text NOT NULL,
	`workspace_id` text NOT NULL,
	PRIMARY KEY(`reference_id`, `workspace_id`),
	FOREIGN KEY (`reference_id`) REFERENCES `secret_references`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
CREATE INDEX `secret_reference_workspaces_workspace` ON `secret_reference_workspaces` (`workspace_id`);
CREATE TABLE `secret_reference_tags` (
	`reference_id` text NOT NULL,
	`pair` text NOT NULL,
	PRIMARY KEY(`pair`, `reference_id`),
	FOREIGN KEY (`reference_id`) REFERENCES `secret_references`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
CREATE INDEX `secret_reference_tags_reference` ON `secret_reference_tags` (`reference_id`);
CREATE TABLE `secret_mappings` (
	`holder_kind` text NOT NULL,
	`holder_id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`position` integer NOT NULL,
	`target_field` text NOT NULL,
	`secret_reference_id` text NOT NULL,
	`reference_as_given` text NOT NULL,
	`secret_key` text,
	`value_format` text,
	PRIMARY KEY(`holder_kind`, `holder_id`, `position`),
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`secret_reference_id`) REFERENCES `secret_references`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "secret_mappings_value_format" CHECK(value_format IN ('json', 'string'))
) STRICT;
CREATE UNIQUE INDEX `secret_mappings_target` ON `secret_mappings` (`holder_kind`,`holder_id`,`target_field`);
CREATE INDEX `secret_mappings_reference` ON `secret_mappings` (`secret_reference_id`);
CREATE INDEX `api_keys_accountable_user` ON `api_keys` (`accountable_user_id`);
