import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  Exclusions,
  ExclusionsQuery,
  OrganisationDefaults,
  OrganisationSettings,
  OrganisationSettingsUpdate,
  UpdateExclusions,
  UpdateOrganisationDefaults,
} from '../../schema/api/organisation-settings.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { assertOwnOrganisation } from '../auth/tenancy.ts'
import type { Gatehouse } from '../gatehouse.ts'
import {
  type GuardrailKind,
  listExclusions,
  organisationDefaults,
  updateExclusions,
  updateOrganisationDefaults,
} from './guardrails.ts'
import { organisationSettings, updateOrganisationSettings } from './settings.ts'

const readProblems = problems('unauthenticated', 'forbidden')
const writeProblems = problems('invalid', 'unauthenticated', 'forbidden')

/** Always the organisation of the key; nobody names another one. */
export const organisationRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ normalize: false })
    .decorate(guarded)
    .get('/admin/organisation/defaults', organisationDefaults, {
      ...requires('organisation_settings.read', 'Get the default guardrails of the organisation'),
      response: { 200: OrganisationDefaults, ...readProblems },
    })
    .put(
      '/admin/organisation/defaults',
      (context) => updateOrganisationDefaults(gatehouse, actorOf(gatehouse, context), context.body),
      {
        ...requires('organisation_settings.update', 'Set the default guardrails of the organisation'),
        body: UpdateOrganisationDefaults,
        response: { 200: OrganisationDefaults, ...writeProblems },
      },
    )
    .get('/admin/organisation/settings', ({ caller }) => organisationSettings(gatehouse.read, caller.organisationId), {
      ...requires('organisation_settings.read', 'Get the settings of the organisation'),
      response: { 200: OrganisationSettings, ...readProblems },
    })
    .put(
      '/admin/organisation/settings',
      (context) => updateOrganisationSettings(gatehouse, actorOf(gatehouse, context), context.body),
      {
        ...requires('organisation_settings.update', 'Update the settings of the organisation'),
        body: OrganisationSettingsUpdate,
        response: { 200: OrganisationSettings, ...writeProblems },
      },
    )
    .use(exclusionRoutes(gatehouse, requires, 'input'))
    .use(exclusionRoutes(gatehouse, requires, 'output'))

const exclusionRoutes = (gatehouse: Gatehouse, requires: Requires, kind: GuardrailKind) =>
  new Elysia({ prefix: `/workspace-exclusions/${kind}-guardrails`, normalize: false })
    .decorate(guarded)
    .get(
      '',
      ({ query, caller }) => {
        assertOwnOrganisation(caller, query.organisation_id)
        return listExclusions(gatehouse.read, caller.organisationId, kind)
      },
      {
        ...requires('organisation_exclusions.list', `List workspaces without the organisation's ${kind} guardrails`),
        query: ExclusionsQuery,
        response: { 200: Exclusions, ...writeProblems },
      },
    )
    .put(
      '',
      (context) => {
        assertOwnOrganisation(context.caller, context.body.organisation_id)
        return updateExclusions(gatehouse, actorOf(gatehouse, context), kind, context.body)
      },
      {
        ...requires('organisation_exclusions.update', `Except workspaces from the organisation's ${kind} guardrails`),
        body: UpdateExclusions,
        response: { 200: Nothing, ...writeProblems },
      },
    )
