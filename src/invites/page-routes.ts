import { Elysia } from 'elysia'
import type { Gatehouse } from '../gatehouse.ts'
import { createHead } from '../http/head.ts'
import { INVITE_PAGE, INVITE_SCRIPT, INVITE_STYLE } from './page.ts'

/** The page behind the link of an invite; public, since the token in the link is what counts. */
export function invitePageRoutes({ config }: Pick<Gatehouse, 'config'>) {
  const head = createHead(config)
  const answer = (body: string, type: string): Response =>
    new Response(body, {
      headers: {
        ...head(undefined, `${type}; charset=utf-8`),
        'content-security-policy': POLICY,
        'referrer-policy': 'no-referrer',
      },
    })
  return new Elysia()
    .get('/invite', () => answer(INVITE_PAGE, 'text/html'), HIDDEN)
    .get('/invite/page.js', () => answer(INVITE_SCRIPT, 'text/javascript'), HIDDEN)
    .get('/invite/page.css', () => answer(INVITE_STYLE, 'text/css'), HIDDEN)
}

const HIDDEN = { detail: { hide: true } }

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
