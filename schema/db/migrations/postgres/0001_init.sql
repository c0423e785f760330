CREATE TABLE "installation" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"instance_id" text COLLATE "C" NOT NULL,
	"revision" bigint NOT NULL,
	"pruned_revision" bigint NOT NULL,
	"created_at" bigint NOT NULL
);
CREATE TABLE "schema_migrations" (
	"version" bigint PRIMARY KEY NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"checksum" text COLLATE "C" NOT NULL,
	"applied_at" bigint NOT NULL
);
CREATE TABLE "changes" (
	"revision" bigint NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"at" bigint NOT NULL,
	CONSTRAINT "changes_revision_kind_id_pk" PRIMARY KEY("revision","kind","id")
);
CREATE TABLE "keyring" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"purpose" text COLLATE "C" NOT NULL,
	"state" text COLLATE "C" NOT NULL,
	"sealed_by" text COLLATE "C" NOT NULL,
	"sealed" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "keyring_purpose" CHECK (purpose IN ('data', 'api_key_pepper', 'audit_signing', 'fingerprint', 'cursor')),
	CONSTRAINT "keyring_state" CHECK (state IN ('current', 'previous', 'retired'))
);
CREATE TABLE "audit_events" (
	"seq" bigint PRIMARY KEY NOT NULL,
	"text" text COLLATE "C" NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"is_foreign" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"clock" bigint NOT NULL,
	"method" text COLLATE "C",
	"uri" text COLLATE "C",
	"request_id" text COLLATE "C",
	"user_type" text COLLATE "C" NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"workspace_id" text COLLATE "C",
	"status" bigint NOT NULL,
	"resource_type" text COLLATE "C" NOT NULL,
	"action" text COLLATE "C" NOT NULL,
	"resource_id" text COLLATE "C",
	"client_ip" text COLLATE "C",
	CONSTRAINT "audit_events_user_type_known" CHECK (user_type IN ('api_key', 'user', 'cli', 'system'))
);
CREATE TABLE "audit_head" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"chain_id" text COLLATE "C" NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"clock" bigint NOT NULL,
	"pruned_seq" bigint NOT NULL,
	"pruned_hash" text COLLATE "C" NOT NULL,
	"key_id" text COLLATE "C" NOT NULL,
	"signature" text COLLATE "C" NOT NULL
);
CREATE TABLE "audit_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"public_key" text COLLATE "C" NOT NULL,
	"vouched_by" text COLLATE "C",
	"voucher" text COLLATE "C"
);
CREATE TABLE "organisations" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"settings" text COLLATE "C" DEFAULT '{}' NOT NULL,
	"guardrails" text COLLATE "C" DEFAULT '{}' NOT NULL,
	"created_at" bigint NOT NULL
);
CREATE TABLE "users" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"first_name" text COLLATE "C" DEFAULT '' NOT NULL,
	"last_name" text COLLATE "C" DEFAULT '' NOT NULL,
	"role" text COLLATE "C" NOT NULL,
	"status" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "users_role" CHECK (role IN ('owner', 'admin', 'member')),
	CONSTRAINT "users_status" CHECK (status IN ('active', 'removed'))
);
CREATE TABLE "workspaces" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"icon" text COLLATE "C",
	"description" text COLLATE "C",
	"is_default" boolean NOT NULL,
	"status" text COLLATE "C" NOT NULL,
	"defaults" text COLLATE "C",
	"usage_limits" text COLLATE "C",
	"rate_limits" text COLLATE "C",
	"security_settings" text COLLATE "C",
	"settings" text COLLATE "C",
	"created_by" text COLLATE "C",
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "workspaces_status" CHECK (status IN ('active', 'archived'))
);
CREATE TABLE "workspace_members" (
	"workspace_id" text COLLATE "C" NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"role" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "workspace_members_workspace_id_user_id_pk" PRIMARY KEY("workspace_id","user_id"),
	CONSTRAINT "workspace_members_role" CHECK (role IN ('admin', 'manager', 'member'))
);
CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"workspace_id" text COLLATE "C",
	"user_id" text COLLATE "C",
	"accountable_user_id" text COLLATE "C" NOT NULL,
	"type" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C",
	"scopes" text COLLATE "C" NOT NULL,
	"digest" text COLLATE "C",
	"previous_digest" text COLLATE "C",
	"previous_digest_expires_at" bigint,
	"masked" text COLLATE "C" NOT NULL,
	"creation_mode" text COLLATE "C" NOT NULL,
	"created_by_key_id" text COLLATE "C",
	"expires_at" bigint,
	"expires_at_text" text COLLATE "C",
	"rate_limits" text COLLATE "C",
	"usage_limits" text COLLATE "C",
	"last_reset_at" bigint,
	"defaults" text COLLATE "C",
	"alert_emails" text COLLATE "C",
	"rotation_policy" text COLLATE "C",
	"next_rotation_at" bigint,
	"rotation_due_recorded_at" bigint,
	"expiry_recorded_at" bigint,
	"last_used_at" bigint,
	"deleted_at" bigint,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "api_keys_type" CHECK (type IN ('organisation-service', 'workspace-service', 'workspace-user', 'system')),
	CONSTRAINT "api_keys_creation_mode" CHECK (creation_mode IN ('ui', 'api', 'auto'))
);
CREATE TABLE "invites" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"role" text COLLATE "C" NOT NULL,
	"workspaces" text COLLATE "C" NOT NULL,
	"key_details" text COLLATE "C" NOT NULL,
	"first_name" text COLLATE "C",
	"last_name" text COLLATE "C",
	"token_digest" text COLLATE "C" NOT NULL,
	"status" text COLLATE "C" NOT NULL,
	"invited_by_key_id" text COLLATE "C",
	"invited_by_user_id" text COLLATE "C" NOT NULL,
	"accepted_user_id" text COLLATE "C",
	"accepted_at" bigint,
	"expires_at" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "invites_role" CHECK (role IN ('admin', 'member')),
	CONSTRAINT "invites_status" CHECK (status IN ('pending', 'accepted', 'cancelled'))
);
CREATE TABLE "idempotent_answers" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"body_digest" text COLLATE "C" NOT NULL,
	"event" text COLLATE "C" NOT NULL,
	"answer" text COLLATE "C",
	"sealed_answer" "bytea",
	"created_at" bigint NOT NULL
);
CREATE TABLE "collections" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"workspace_id" text COLLATE "C" NOT NULL,
	"parent_collection_id" text COLLATE "C",
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"is_default" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL
);
CREATE TABLE "prompts" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"workspace_id" text COLLATE "C" NOT NULL,
	"collection_id" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"default_version" bigint NOT NULL,
	"latest_version" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL
);
CREATE TABLE "prompt_versions" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"prompt_id" text COLLATE "C" NOT NULL,
	"number" bigint NOT NULL,
	"template" text COLLATE "C" NOT NULL,
	"template_type" text COLLATE "C" NOT NULL,
	"is_raw" boolean NOT NULL,
	"parameters" text COLLATE "C" NOT NULL,
	"functions" text COLLATE "C",
	"tools" text COLLATE "C",
	"tool_choice" text COLLATE "C",
	"template_metadata" text COLLATE "C" NOT NULL,
	"model" text COLLATE "C" NOT NULL,
	"virtual_key" text COLLATE "C",
	"ai_model_id" text COLLATE "C",
	"finetune_id" text COLLATE "C",
	"description" text COLLATE "C",
	"created_at" bigint NOT NULL,
	CONSTRAINT "prompt_versions_template_type" CHECK (template_type IN ('chat', 'text'))
);
CREATE TABLE "partials" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"workspace_id" text COLLATE "C" NOT NULL,
	"collection_id" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"status" text COLLATE "C" NOT NULL,
	"default_version" bigint NOT NULL,
	"latest_version" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "partials_status" CHECK (status IN ('active', 'archived'))
);
CREATE TABLE "partial_versions" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"partial_id" text COLLATE "C" NOT NULL,
	"number" bigint NOT NULL,
	"template" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C",
	"created_at" bigint NOT NULL
);
CREATE TABLE "prompt_partials" (
	"version_id" text COLLATE "C" NOT NULL,
	"partial_slug" text COLLATE "C" NOT NULL,
	CONSTRAINT "prompt_partials_version_id_partial_slug_pk" PRIMARY KEY("version_id","partial_slug")
);
CREATE TABLE "labels" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"workspace_id" text COLLATE "C",
	"scope_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C",
	"color_code" text COLLATE "C",
	"is_universal" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL
);
CREATE TABLE "prompt_labels" (
	"prompt_id" text COLLATE "C" NOT NULL,
	"label_id" text COLLATE "C" NOT NULL,
	"version_id" text COLLATE "C" NOT NULL,
	"assigned_at" bigint NOT NULL,
	CONSTRAINT "prompt_labels_prompt_id_label_id_pk" PRIMARY KEY("prompt_id","label_id")
);
ALTER TABLE "users" ADD CONSTRAINT "users_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "workspace_members" ADD CONSTRAINT "workspace_members_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "workspace_members" ADD CONSTRAINT "workspace_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_accountable_user_id_users_id_fk" FOREIGN KEY ("accountable_user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "invites" ADD CONSTRAINT "invites_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "collections" ADD CONSTRAINT "collections_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "prompts" ADD CONSTRAINT "prompts_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "prompts" ADD CONSTRAINT "prompts_collection_id_collections_id_fk" FOREIGN KEY ("collection_id") REFERENCES "public"."collections"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "prompt_versions" ADD CONSTRAINT "prompt_versions_prompt_id_prompts_id_fk" FOREIGN KEY ("prompt_id") REFERENCES "public"."prompts"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "partials" ADD CONSTRAINT "partials_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "partials" ADD CONSTRAINT "partials_collection_id_collections_id_fk" FOREIGN KEY ("collection_id") REFERENCES "public"."collections"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "partial_versions" ADD CONSTRAINT "partial_versions_partial_id_partials_id_fk" FOREIGN KEY ("partial_id") REFERENCES "public"."partials"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "prompt_partials" ADD CONSTRAINT "prompt_partials_version_id_prompt_versions_id_fk" FOREIGN KEY ("version_id") REFERENCES "public"."prompt_versions"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "labels" ADD CONSTRAINT "labels_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "labels" ADD CONSTRAINT "labels_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "prompt_labels" ADD CONSTRAINT "prompt_labels_prompt_id_prompts_id_fk" FOREIGN KEY ("prompt_id") REFERENCES "public"."prompts"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "prompt_labels" ADD CONSTRAINT "prompt_labels_label_id_labels_id_fk" FOREIGN KEY ("label_id") REFERENCES "public"."labels"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "prompt_labels" ADD CONSTRAINT "prompt_labels_version_id_prompt_versions_id_fk" FOREIGN KEY ("version_id") REFERENCES "public"."prompt_versions"("id") ON DELETE cascade ON UPDATE no action;
CREATE INDEX "audit_events_clock" ON "audit_events" USING btree ("clock","created_at","seq");
CREATE INDEX "audit_events_foreign" ON "audit_events" USING btree ("is_foreign","seq");
CREATE INDEX "audit_events_method" ON "audit_events" USING btree ("is_foreign","method","seq");
CREATE INDEX "audit_events_uri" ON "audit_events" USING btree ("is_foreign","uri","seq");
CREATE INDEX "audit_events_request" ON "audit_events" USING btree ("is_foreign","request_id","seq");
CREATE INDEX "audit_events_user_type" ON "audit_events" USING btree ("is_foreign","user_type","seq");
CREATE INDEX "audit_events_user" ON "audit_events" USING btree ("is_foreign","user_id","seq");
CREATE INDEX "audit_events_workspace" ON "audit_events" USING btree ("is_foreign","workspace_id","seq");
CREATE INDEX "audit_events_status" ON "audit_events" USING btree ("is_foreign","status","seq");
CREATE INDEX "audit_events_resource_type" ON "audit_events" USING btree ("is_foreign","resource_type","seq");
CREATE INDEX "audit_events_action" ON "audit_events" USING btree ("is_foreign","action","seq");
CREATE INDEX "audit_events_resource" ON "audit_events" USING btree ("is_foreign","resource_id","seq");
CREATE INDEX "audit_events_client" ON "audit_events" USING btree ("is_foreign","client_ip","seq");
CREATE UNIQUE INDEX "users_email" ON "users" USING btree ("organisation_id","email") WHERE status = 'active';
CREATE UNIQUE INDEX "workspaces_slug" ON "workspaces" USING btree ("organisation_id","slug");
CREATE INDEX "workspace_members_user" ON "workspace_members" USING btree ("user_id");
CREATE UNIQUE INDEX "api_keys_digest" ON "api_keys" USING btree ("digest");
CREATE UNIQUE INDEX "api_keys_previous_digest" ON "api_keys" USING btree ("previous_digest");
CREATE INDEX "api_keys_workspace" ON "api_keys" USING btree ("workspace_id");
CREATE INDEX "api_keys_user" ON "api_keys" USING btree ("user_id");
CREATE INDEX "api_keys_next_rotation" ON "api_keys" USING btree ("next_rotation_at");
CREATE INDEX "api_keys_expiry" ON "api_keys" USING btree ("expires_at");
CREATE INDEX "api_keys_organisation" ON "api_keys" USING btree ("organisation_id","created_at");
CREATE UNIQUE INDEX "invites_token" ON "invites" USING btree ("token_digest");
CREATE INDEX "invites_organisation" ON "invites" USING btree ("organisation_id","created_at");
CREATE INDEX "idempotent_answers_created" ON "idempotent_answers" USING btree ("created_at");
CREATE UNIQUE INDEX "collections_slug" ON "collections" USING btree ("slug");
CREATE INDEX "collections_workspace" ON "collections" USING btree ("workspace_id");
CREATE INDEX "collections_parent" ON "collections" USING btree ("parent_collection_id");
CREATE UNIQUE INDEX "prompts_slug" ON "prompts" USING btree ("slug");
CREATE INDEX "prompts_workspace" ON "prompts" USING btree ("workspace_id","last_updated_at");
CREATE INDEX "prompts_collection" ON "prompts" USING btree ("collection_id");
CREATE UNIQUE INDEX "prompt_versions_number" ON "prompt_versions" USING btree ("prompt_id","number");
CREATE UNIQUE INDEX "partials_slug" ON "partials" USING btree ("slug");
CREATE INDEX "partials_workspace" ON "partials" USING btree ("workspace_id","last_updated_at");
CREATE INDEX "partials_collection" ON "partials" USING btree ("collection_id");
CREATE UNIQUE INDEX "partial_versions_number" ON "partial_versions" USING btree ("partial_id","number");
CREATE INDEX "prompt_partials_slug" ON "prompt_partials" USING btree ("partial_slug");
CREATE UNIQUE INDEX "labels_name" ON "labels" USING btree ("scope_id","name");
CREATE INDEX "labels_organisation" ON "labels" USING btree ("organisation_id");
CREATE INDEX "prompt_labels_label" ON "prompt_labels" USING btree ("label_id");
