// A human approves and refuses a real hook's request in a real browser.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DESKTOP, PHONE, Stage, openBrowser, openPage, shots } from "./stage.mjs";

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

const decide = (page, option) => page.locator(`button[name=decision][value="${option}"]`);

/** Clicks an option and waits for the page that follows, so that no navigation is under way. */
async function choose(page, option) {
  await Promise.all([page.waitForEvent("load"), decide(page, option).click()]);
}

async function wide(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

for (const [name, viewport] of [
  ["desktop", DESKTOP],
  ["phone", PHONE],
]) {
  describe(`at ${name} width`, () => {
    let stage;
    before(async () => {
      stage = await Stage.open();
    });
    after(() => stage?.close());

    test("a link logs in once, and approve and refuse reach the hook", async () => {
      const { context, page, problems } = await openPage(browser, stage, { viewport });
      const link = stage.loginLink();
      await page.goto(link);
      await page.waitForURL(`${stage.url}/approvals`);

      // The page is open before the request exists: it must appear by itself.
      const approved = stage.hook({ command: "cargo test --workspace" });
      await page.getByText("cargo test --workspace").first().waitFor();
      assert.ok((await wide(page)) <= 0, "nothing may be wider than the screen");
      await page.screenshot({ path: join(shots, `${name}-pending.png`), fullPage: true });
      await page.getByText("cargo test --workspace").first().click();
      await choose(page, "同意");
      const yes = await approved.ended;
      assert.equal(yes.code, 0);
      assert.equal(yes.answer.decision, "approve");

      const refused = stage.hook({ command: "rm -rf build/" });
      await page.goto(`${stage.url}/approvals`);
      await page.getByText("rm -rf build/").first().click();
      await page.locator("textarea[name=note], input[name=note]").fill("先别删，里面有没提交的东西");
      await page.screenshot({ path: join(shots, `${name}-request.png`), fullPage: true });
      await choose(page, "拒绝");
      const no = await refused.ended;
      assert.equal(no.answer.decision, "block");
      assert.match(no.answer.reason, /先别删，里面有没提交的东西/);
      assert.match(no.answer.reason, /ann/);
      assert.deepEqual(problems, []);
      await context.close();

      // The link is used up.
      const second = await openPage(browser, stage, { viewport });
      await second.page.goto(link);
      assert.doesNotMatch(second.page.url(), /approvals$/);
      await second.context.close();
    });

    test("without JavaScript the same page decides", async () => {
      const { context, page } = await openPage(browser, stage, { viewport, javaScript: false });
      await page.goto(stage.loginLink());
      const hook = stage.hook({ command: "make install" });
      for (let look = 0; look < 200; look += 1) {
        await page.goto(`${stage.url}/approvals`);
        if ((await page.getByText("make install").count()) > 0) break;
      }
      await page.getByText("make install").first().click();
      await choose(page, "同意");
      const out = await hook.ended;
      assert.equal(out.answer.decision, "approve");
      await context.close();
    });

    test("a request that the hook took back cannot be approved any more", async () => {
      const { context, page, problems } = await openPage(browser, stage, { viewport });
      await page.goto(stage.loginLink());
      const hook = stage.hook({ command: "git push --force" }, { interactive: true });
      await page.getByText("git push --force").first().click();
      await decide(page, "同意").waitFor();
      hook.child.kill("SIGTERM");
      const out = await hook.ended;
      assert.equal(out.stdout, "");
      // Whether the page has noticed or the click is refused: nothing says that it was approved.
      const button = decide(page, "同意");
      if ((await button.count()) > 0) await button.click({ timeout: 2_000 }).catch(() => {});
      const state = await stage.api("GET", "/api/v1/me/permissions?status=withdrawn", stage.userKey);
      const list = state.permissions ?? state;
      const taken = list.find((r) => JSON.stringify(r).includes("git push --force"));
      assert.ok(taken, "the request is listed as withdrawn");
      assert.deepEqual(problems.filter((p) => !/409/.test(p)), []);
      await context.close();
    });
  });
}
