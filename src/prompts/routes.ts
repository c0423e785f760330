import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  CreatePrompt,
  ListPromptsQuery,
  MakeDefault,
  Prompt,
  PromptCreated,
  PromptList,
  PromptUpdated,
  PromptVersionList,
  UpdatePrompt,
  UpdatePromptVersion,
  VersionQuery,
} from '../../schema/api/prompts.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { workspaceForList } from '../auth/tenancy.ts'
import { resolveCollection } from '../collections/store.ts'
import { notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { getPrompt, getPromptVersion } from './lookup.ts'
import { presentPrompt, presentPromptSummary, presentVersion } from './present.ts'
import { createPrompt, deletePrompt, labelVersion, makeDefault, updatePrompt } from './service.ts'
import { findVersionById, listPrompts, listVersionLabels, listVersions } from './store.ts'

export const promptRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/prompts', normalize: false })
    .decorate(guarded)
    .post('', (context) => createPrompt(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('prompts.create', 'Create a prompt with its first version', 'prompt_body_bytes'),
      body: CreatePrompt,
      response: { 200: PromptCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const workspaceId = await workspaceForList(gatehouse.read, caller, query.workspace_id)
        const collection =
          query.collection_id && (await resolveCollection(gatehouse.read, caller, query.collection_id, undefined))
        const filter = { workspaceId, collectionId: collection ? collection.id : undefined, search: query.search }
        // Sharing is not offered, so nothing is shared.
        if (query.type === 'shared') return listOf([], 0)
        const { rows, total } = await listPrompts(gatehouse.read, caller, filter, readPage(query))
        return listOf(
          rows.map((row) => presentPromptSummary(row.prompt, row.model)),
          total,
        )
      },
      {
        ...requires('prompts.list', 'List prompts, newest change first'),
        query: ListPromptsQuery,
        response: { 200: PromptList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:promptId',
      async ({ params, query, caller }) => {
        const { prompt, version } = await getPromptVersion(gatehouse.read, caller, params.promptId, query.version)
        return presentPrompt(prompt, version, await listVersionLabels(gatehouse.read, version.id))
      },
      {
        ...requires('prompts.read', 'Get a prompt, its default version unless another is named'),
        query: VersionQuery,
        response: { 200: Prompt, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:promptId',
      (context) => updatePrompt(gatehouse, actorOf(gatehouse, context), context.params.promptId, context.body),
      {
        ...requires('prompts.update', 'Rename or move a prompt, or add a version', 'prompt_body_bytes'),
        body: UpdatePrompt,
        response: { 200: PromptUpdated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete('/:promptId', (context) => deletePrompt(gatehouse, actorOf(gatehouse, context), context.params.promptId), {
      ...requires('prompts.delete', 'Delete a prompt and all its versions'),
      response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    })
    .get(
      '/:promptId/versions',
      async ({ params, caller }) => {
        const prompt = await getPrompt(gatehouse.read, caller, withoutSuffix(params.promptId))
        const versions = await listVersions(gatehouse.read, prompt.id)
        return listOf(
          versions.map(({ version, labelId }) => presentVersion(prompt, version, labelId)),
          versions.length,
        )
      },
      {
        ...requires('prompts.read', 'List the versions of a prompt, newest first'),
        response: { 200: PromptVersionList, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:promptId/versions/:versionId',
      async ({ params, caller }) => {
        const prompt = await getPrompt(gatehouse.read, caller, withoutSuffix(params.promptId))
        const version = await findVersionById(gatehouse.read, prompt.id, params.versionId)
        if (version === undefined) throw notFound('prompt version')
        return presentPrompt(prompt, version, await listVersionLabels(gatehouse.read, version.id))
      },
      {
        ...requires('prompts.read', 'Get one version of a prompt'),
        response: { 200: Prompt, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:promptId/versions/:versionId',
      (context) => {
        const { promptId, versionId } = context.params
        return labelVersion(gatehouse, actorOf(gatehouse, context), promptId, versionId, context.body.label_id)
      },
      {
        ...requires('prompts.update', 'Put a label on a version, or take all off it'),
        body: UpdatePromptVersion,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:promptId/makeDefault',
      (context) => makeDefault(gatehouse, actorOf(gatehouse, context), context.params.promptId, context.body.version),
      {
        ...requires('prompts.publish', 'Publish a version: make it the default'),
        body: MakeDefault,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )

/** The versions of a prompt are the same whichever of them a reference means. */
const withoutSuffix = (reference: string): string => reference.split('@', 1)[0] ?? reference
