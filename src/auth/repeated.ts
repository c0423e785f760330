import { invalidField } from '../errors.ts'

/** The path parameters that clients repeat in bodies, under these names (decision 4). */
export const REPEATED: Record<string, readonly string[]> = {
  promptId: ['prompt_id', 'id', 'slug'],
  partialId: ['prompt_partial_id', 'id', 'slug'],
  collectionId: ['id', 'slug'],
  labelId: ['id'],
  apiKeyId: ['id'],
  workspaceId: ['workspace_id'],
  userId: ['user_id', 'id'],
  inviteId: ['invite_id', 'id'],
  // A slug beside an id is the reference's own, and ignored (file 04).
  secretReferenceId: ['secret_reference_id', 'id'],
}

/** Any other key of a render body is the model's (spec 2.1). */
export const REPEATED_IN_RENDER: typeof REPEATED = { promptId: ['prompt_id'] }

/** Of a workspace, an id beside a slug may mean the same one: then the path counts. Two ids, or two slugs, may not differ. */
const contradicts = (param: string, repeated: unknown, inPath: string | undefined): boolean =>
  repeated !== inPath &&
  !(param === 'workspaceId' && typeof repeated === 'string' && UUID.test(repeated) !== UUID.test(inPath ?? ''))

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Removes path parameters that the body repeats, after checking that both say the same. */
export function takeRepeatedParameters(params: Record<string, string>, body: unknown, repeated: typeof REPEATED): void {
  // The body of a version is the version itself, whose id is not the prompt's; its other keys are ignored anyway.
  if (typeof body !== 'object' || body === null || params['versionId'] !== undefined) return
  const fields = body as Record<string, unknown>
  for (const param in params) {
    for (const name of repeated[param] ?? []) {
      if (!Object.hasOwn(fields, name)) continue
      if (fields[name] !== null && contradicts(param, fields[name], params[param]))
        throw invalidField(name, 'differs from the path; leave it out')
      delete fields[name]
    }
  }
}
