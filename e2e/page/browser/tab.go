package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Keys for Press.
const (
	Tabulator = kb.Tab
	Enter     = kb.Enter
	Escape    = kb.Escape
	ArrowDown = kb.ArrowDown
)

// Themes are the values of prefers-color-scheme.
var Themes = []string{"light", "dark"}

// Tab is a tab with cookies, storage and permissions of its own. Its methods
// fail the test if the browser reports an error.
type Tab struct {
	tb  testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []Problem
	requests []string
	received float64
}

// Problem is something that a page without faults does not do.
type Problem struct {
	// Kind is console, exception, dialog, or the source of an entry of the
	// browser's log, such as security for a violation of the
	// Content-Security-Policy and network for a failed request.
	Kind string
	Text string
}

// Open opens a tab. It closes with the test.
func (b *Browser) Open(tb testing.TB) *Tab {
	tb.Helper()
	tab := &Tab{tb: tb}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.listen))
	// On a busy machine the browser may not answer in time that the tab is closed. It
	// ends with the browser then.
	tb.Cleanup(cancel)
	tab.ctx = ctx
	tab.do()
	return tab
}

// listen takes an event. It must not call the browser.
func (t *Tab) listen(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.problems = append(t.problems, Problem{Kind: e.Entry.Source.String(), Text: e.Entry.Text + " " + e.Entry.URL})
		}
	case *runtime.EventConsoleAPICalled:
		text := []string{e.Type.String()}
		for _, argument := range e.Args {
			text = append(text, string(argument.Value)+argument.Description)
		}
		t.problems = append(t.problems, Problem{Kind: "console", Text: strings.Join(text, " ")})
	case *runtime.EventExceptionThrown:
		t.problems = append(t.problems, Problem{Kind: "exception", Text: (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()})
	case *page.EventJavascriptDialogOpening:
		t.problems = append(t.problems, Problem{Kind: "dialog", Text: e.Message})
		// A dialog that nobody closes stops the page.
		go func() {
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	case *network.EventDataReceived:
		t.received += float64(e.DataLength)
	}
}

// Problems returns what the browser has reported since the tab opened.
func (t *Tab) Problems() []Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

// Requests returns the address of every request that the tab has made.
func (t *Tab) Requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Received returns the number of bytes of all answers so far, uncompressed and
// without headers.
func (t *Tab) Received() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.received
}

// Go loads a page and waits until it is loaded.
func (t *Tab) Go(url string) {
	t.tb.Helper()
	t.do(chromedp.Navigate(url))
}

// Reload loads the page again and waits until it is loaded.
func (t *Tab) Reload() {
	t.tb.Helper()
	t.do(chromedp.Reload())
}

// Resize sets the size of the viewport in CSS pixels.
func (t *Tab) Resize(width, height int) {
	t.tb.Helper()
	t.do(chromedp.EmulateViewport(int64(width), int64(height)))
}

// Theme sets prefers-color-scheme to one of Themes.
func (t *Tab) Theme(theme string) {
	t.tb.Helper()
	t.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	}))
}

// Clipboard returns the text on the clipboard. Only reading takes a permission,
// so a page that writes has to get by without one.
func (t *Tab) Clipboard() string {
	t.tb.Helper()
	_, err := chromedp.CallBrowser(t.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission:       &browser.PermissionDescriptor{Name: "clipboard-read"},
		Setting:          browser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
	})
	if err != nil {
		t.tb.Fatalf("permit reading the clipboard: %v", err)
	}
	return Eval[string](t, "navigator.clipboard.readText()")
}

// Press sends the keys to the element that has the focus, as a keyboard does.
func (t *Tab) Press(keys string) {
	t.tb.Helper()
	for _, key := range keys {
		for _, event := range kb.Encode(key) {
			switch event.Type {
			case kb.KeyChar:
				// Part of keyDown, or else it types a character of which the page
				// has prevented the default.
				continue
			case kb.KeyDown:
				event.Text = kb.Keys[key].Text
			}
			t.do(command(input.DispatchKeyEvent, *event))
		}
	}
}

// Click clicks on the first element that a CSS selector names, with the mouse. What
// arrives at the page may move or remove the element after the look for it: a click that
// hits another one, or none, is repeated.
func (t *Tab) Click(selector string) {
	t.tb.Helper()
	watch := fmt.Sprintf(`{
		window.hit = false;
		document.addEventListener("click", event => { window.hit = event.target.closest(%q) !== null; }, {capture: true, once: true});
	}`, selector)
	for range 50 {
		Eval[any](t, watch)
		if _, err := try(t, chromedp.Click(chromedp.CSS(selector))); err != nil {
			if strings.Contains(err.Error(), noNode) {
				continue
			}
			t.tb.Fatalf("the browser: %v", err)
		}
		// A page that the click has opened knows nothing of it.
		if Eval[bool](t, "window.hit !== false") {
			return
		}
	}
	t.tb.Fatalf("no click hits %s", selector)
}

// noNode is part of the browser's error where an element was removed after the look for it.
const noNode = "Could not find node with given id"

// Picture returns the viewport as PNG, or the whole page.
func (t *Tab) Picture(whole bool) []byte {
	t.tb.Helper()
	if whole {
		return run(t, chromedp.FullScreenshot(100))
	}
	return run(t, chromedp.CaptureScreenshot())
}

// Eval returns the value of a JavaScript expression; if that is a promise, what
// it resolves to. JSON carries the value.
func Eval[T any](t *Tab, expression string) T {
	t.tb.Helper()
	return run(t, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Await waits until a JavaScript expression is true. One that fails is not true.
func (t *Tab) Await(expression string) {
	t.tb.Helper()
	// Not chromedp.Poll, which needs unsafe-eval of the page's policy.
	deadline := time.Now().Add(timeout)
	for {
		if found, _ := chromedp.Run(t.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); found {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		select {
		case <-t.ctx.Done():
			t.tb.Fatalf("the tab closed: %v", t.ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	text, err := chromedp.Run(t.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	t.tb.Fatalf("after %s this is not true: %s (%v)\nproblems: %q\nthe page:\n%.8000s", timeout, expression, err, t.Problems(), text)
}

func (t *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	run(t, chromedp.Steps(steps...))
}

func run[T any](t *Tab, action chromedp.Action[T]) T {
	t.tb.Helper()
	value, err := try(t, action)
	if err != nil {
		t.tb.Fatalf("the browser: %v", err)
	}
	return value
}

// try is run for an action that may fail.
func try[T any](t *Tab, action chromedp.Action[T]) (T, error) {
	t.tb.Helper()
	type outcome struct {
		value T
		err   error
	}
	// The tab lives as long as the context of the first action, which must not
	// be one that ends with the action.
	done := make(chan outcome, 1)
	go func() {
		value, err := chromedp.Run(t.ctx, action)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(timeout):
		t.tb.Fatalf("the browser has not answered for %s", timeout)
		panic("unreachable")
	}
}

// command makes an action of a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}
