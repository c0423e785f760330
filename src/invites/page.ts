/** What the link of an invite opens. It loads nothing but its own script, and says nothing that came from outside. */
export const INVITE_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer">
<title>Accept your invite</title>
<link rel="stylesheet" href="/invite/page.css">
<main>
<h1>You are invited</h1>
<form id="form">
<label>First name <input name="first_name" maxlength="255" autocomplete="given-name"></label>
<label>Last name <input name="last_name" maxlength="255" autocomplete="family-name"></label>
<button>Accept</button>
</form>
<p id="said" role="status"></p>
<dl id="keys"></dl>
<noscript>This page needs JavaScript.</noscript>
</main>
<script src="/invite/page.js"></script>
</html>
`

export const INVITE_STYLE = `body { font: 1rem/1.5 system-ui, sans-serif; margin: 3rem 1rem; color-scheme: light dark }
main { max-width: 32rem; margin: auto }
label { display: block; margin: 1rem 0 }
input { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: .4rem }
button { font: inherit; padding: .4rem 1rem }
dd { margin: 0 0 1rem; font-family: ui-monospace, monospace; overflow-wrap: anywhere; user-select: all }
`

/** The token goes out of the address bar at once, so that it stays in no history. */
export const INVITE_SCRIPT = `const token = location.hash.slice(1)
history.replaceState(null, '', location.pathname)
const form = document.getElementById('form')
const say = (text) => { document.getElementById('said').textContent = text }
const failed = (status) => {
  if (status === 404) say('This invite is not valid: it was used, taken back or replaced, or it has expired. Ask for a new one.')
  else if (status === 429) say('Too many attempts. Try again in a minute.')
  else if (status === 403) say('Whoever invited you may not do so any more. Ask for a new invite.')
  else if (status === 409) say('You are a user already.')
  else say('It did not work. Try again later.')
}
const show = (keys) => {
  say(keys.length === 0 ? 'Welcome. You are a user now.' : 'Welcome. These are your API keys. They are shown this once: copy them now.')
  for (const { workspace_id, key } of keys) {
    const term = document.createElement('dt')
    const description = document.createElement('dd')
    term.textContent = 'Workspace ' + workspace_id
    description.textContent = key
    document.getElementById('keys').append(term, description)
  }
}
if (token === '') { form.hidden = true; failed(404) }
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  const body = JSON.stringify({ token, ...Object.fromEntries(new FormData(form)) })
  try {
    const answer = await fetch('/v1/admin/users/invites/accept', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    if (!answer.ok) { button.disabled = false; return failed(answer.status) }
    form.hidden = true
    show((await answer.json()).api_keys)
  } catch { button.disabled = false; failed(0) }
})
`
