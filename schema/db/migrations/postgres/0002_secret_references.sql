CREATE TABLE "secret_references" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"description" text COLLATE "C",
	"manager_type" text COLLATE "C" NOT NULL,
	"auth_config" "bytea" NOT NULL,
	"secret_path" text COLLATE "C" NOT NULL,
	"secret_key" text COLLATE "C",
	"allow_all_workspaces" boolean NOT NULL,
	"tags" text COLLATE "C",
	"cache_seconds" bigint,
	"revision" bigint NOT NULL,
	"created_by" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"last_updated_at" bigint NOT NULL,
	CONSTRAINT "secret_references_manager_type" CHECK (manager_type IN ('aws_sm', 'azure_kv', 'hashicorp_vault'))
);
CREATE TABLE "secret_reference_workspaces" (
	"reference_id" text COLLATE "C" NOT NULL,
	"workspace_id" text COLLATE "C" NOT NULL,
	CONSTRAINT "secret_reference_workspaces_reference_id_workspace_id_pk" PRIMARY KEY("reference_id","workspace_id")
);
CREATE TABLE "secret_reference_tags" (
	"reference_id" text COLLATE "C" NOT NULL,
	"pair" text COLLATE "C" NOT NULL,
	CONSTRAINT "secret_reference_tags_pair_reference_id_pk" PRIMARY KEY("pair","reference_id")
);
CREATE TABLE "secret_mappings" (
	"holder_kind" text COLLATE "C" NOT NULL,
	"holder_id" text COLLATE "C" NOT NULL,
	"organisation_id" text COLLATE "C" NOT NULL,
	"position" bigint NOT NULL,
	"target_field" text COLLATE "C" NOT NULL,
	"secret_reference_id" text COLLATE "C" NOT NULL,
	"reference_as_given" text COLLATE "C" NOT NULL,
	"secret_key" text COLLATE "C",
	"value_format" text COLLATE "C",
	CONSTRAINT "secret_mappings_holder_kind_holder_id_position_pk" PRIMARY KEY("holder_kind","holder_id","position"),
	CONSTRAINT "secret_mappings_value_format" CHECK (value_format IN ('json', 'string'))
);
ALTER TABLE "secret_references" ADD CONSTRAINT "secret_references_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "secret_reference_workspaces" ADD CONSTRAINT "secret_reference_workspaces_reference_id_secret_references_id_fk" FOREIGN KEY ("reference_id") REFERENCES "public"."secret_references"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "secret_reference_workspaces" ADD CONSTRAINT "secret_reference_workspaces_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "secret_reference_tags" ADD CONSTRAINT "secret_reference_tags_reference_id_secret_references_id_fk" FOREIGN KEY ("reference_id") REFERENCES "public"."secret_references"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "secret_mappings" ADD CONSTRAINT "secret_mappings_organisation_id_organisations_id_fk" FOREIGN KEY ("organisation_id") REFERENCES "public"."organisations"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "secret_mappings" ADD CONSTRAINT "secret_mappings_secret_reference_id_secret_references_id_fk" FOREIGN KEY ("secret_reference_id") REFERENCES "public"."secret_references"("id") ON DELETE no action ON UPDATE no action;
CREATE UNIQUE INDEX "secret_references_slug" ON "secret_references" USING btree ("organisation_id","slug");
CREATE INDEX "secret_references_created" ON "secret_references" USING btree ("organisation_id","created_at");
CREATE INDEX "secret_reference_workspaces_workspace" ON "secret_reference_workspaces" USING btree ("workspace_id");
CREATE INDEX "secret_reference_tags_reference" ON "secret_reference_tags" USING btree ("reference_id");
CREATE UNIQUE INDEX "secret_mappings_target" ON "secret_mappings" USING btree ("holder_kind","holder_id","target_field");
CREATE INDEX "secret_mappings_reference" ON "secret_mappings" USING btree ("secret_reference_id");
CREATE INDEX "api_keys_accountable_user" ON "api_keys" USING btree ("accountable_user_id");
