import { signIn } from "../credential.ts";

/** Asks for the credential; `problem` says why the last one was refused. */
export function SignIn({ isRun, problem }: { isRun: boolean; problem: string | null }) {
  return (
    <main class="sign-in">
      <h1>fanout</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const value = new FormData(event.currentTarget).get("credential");
          if (typeof value === "string" && value.trim() !== "") signIn(value.trim());
        }}
      >
        <label for="credential">{isRun ? "Run token, or the operator's key" : "The operator's key"}</label>
        <input id="credential" name="credential" type="password" autocomplete="off" required autofocus />
        <button type="submit">Show</button>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <p class="dim">
          The operator's key is the gateway's ADMIN_KEY; npm start writes one to .dev.vars. What you enter stays in this
          tab and is sent to this gateway only.
        </p>
      </form>
    </main>
  );
}
