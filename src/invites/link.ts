import { randomBytes } from 'node:crypto'
import type { KeyActor } from '../auth/caller.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { InviteRow } from './store.ts'

/** What opens an invite. It is in one answer, in the mail where one is sent, and nowhere else. */
export interface Link {
  text: string
  /** what the invite's row holds of it: whoever sends a link answers for the invite */
  columns(now: number): Pick<InviteRow, 'tokenDigest' | 'invitedByKeyId' | 'invitedByUserId' | 'expiresAt'>
  /** said inside the change; the mail goes out after it, and only if there was one */
  isFor(invite: InviteRow): void
  mail(): void
}

const LIFE_MS = 7 * 86_400_000

/** The token stands behind the #, which browsers keep to themselves: it is in nobody's log. */
export function newLink(
  { digestKey, mailer, publicUrl }: Pick<Gatehouse, 'digestKey' | 'mailer' | 'publicUrl'>,
  { caller }: KeyActor,
): Link {
  const token = randomBytes(32).toString('base64url')
  const text = `${publicUrl()}/invite#${token}`
  let invite: InviteRow | undefined
  return {
    text,
    columns: (now) => ({
      tokenDigest: digestOfToken(digestKey, token),
      invitedByKeyId: caller.keyId,
      invitedByUserId: caller.accountableUserId,
      expiresAt: now + LIFE_MS,
    }),
    isFor(row) {
      invite = row
    },
    mail() {
      if (invite === undefined) return
      const { id, email, expiresAt } = invite
      mailer.send(
        { to: email, subject: 'You are invited to Gatehouse', text: letter(text, expiresAt) },
        { invite_id: id },
      )
    },
  }
}

/** With a prefix, so that it is never the digest of an API key. */
export const digestOfToken = (digestKey: Gatehouse['digestKey'], token: string): string => digestKey(`invite:${token}`)

const letter = (link: string, expiresAt: number): string =>
  `You are invited to Gatehouse. Open this link to accept, until ${minute(expiresAt)} UTC:

${link}

Whoever has the link can use it, once. If you did not expect it, ignore this mail.
`

const minute = (time: number): string => new Date(time).toISOString().slice(0, 16).replace('T', ' ')
