/** What a person answers in the browser. */
export interface Person {
  name: string;
  /** False: leaves the page of the authorization server by its "cancel". */
  consents: boolean;
}

const MAX_PAGES = 20;

/**
 * Opens the URL in a browser of its own, signs in and answers as the person does. Returns the URL of `callback` that the
 * authorization server sends the browser back to, without opening it.
 */
export async function visit(authorizationUrl: string, callback: string, person: Person): Promise<string> {
  const cookies = new Map<string, string>();
  let url = authorizationUrl;
  let form: URLSearchParams | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    if (url.startsWith(`${callback}?`)) return url;
    const answer = await fetch(url, {
      redirect: "manual",
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form && { method: "POST", body: form }),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const text = await answer.text();
    const location = answer.headers.get("location");
    form = undefined;
    if (location !== null) {
      url = new URL(location, url).href;
      continue;
    }
    if (answer.status !== 200) throw new Error(`the authorization server answered ${answer.status}: ${text}`);
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(text) ?? [];
    const [, abort] = /href="([^"]+\/abort)"/.exec(text) ?? [];
    if (prompt === undefined || abort === undefined) throw new Error(`the authorization server shows ${text}`);
    if (!person.consents) {
      url = new URL(abort, url).href;
    } else {
      form = new URLSearchParams({ prompt, login: person.name, password: "any" });
      const [, action = url] = /action="([^"]+)"/.exec(text) ?? [];
      url = new URL(action, url).href;
    }
  }
  throw new Error("the authorization server has too many pages");
}
