/** The mail with a sign-in code: plain text, with the code on a line of its own for easy copying. */
export function signInMail(input: { code: string; publicUrl: string; expiresInSeconds: number }): {
  subject: string;
  text: string;
} {
  const minutes = Math.max(1, Math.floor(input.expiresInSeconds / 60));
  const text = `Hello,

here is your code to sign in to Roost at ${input.publicUrl}

    ${input.code}

It works once, within the next ${minutes} ${minutes === 1 ? "minute" : "minutes"}. A newer code replaces it.

If you did not ask for it, you can ignore this mail: without this code nobody
can sign in as you. Never share it.
`;
  return { subject: `Your Roost sign-in code: ${input.code}`, text };
}
