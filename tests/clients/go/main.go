// OpenAI's client for Go, over every route that it covers and the server has.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func must[T any](value T, err error) T {
	check(err == nil, err)
	return value
}

func check(holds bool, what any) {
	if !holds {
		log.Panicln(what)
	}
}

func client(name string) openai.Client {
	return openai.NewClient(option.WithBaseURL(os.Getenv(name)+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func main() {
	ctx, writes := context.Background(), client("WRITES")
	model := must(writes.Models.List(ctx)).Data[0].ID
	check(must(writes.Models.Get(ctx, model)).ID == model, "model")

	chat := openai.ChatCompletionNewParams{
		Model: model, Temperature: openai.Float(0), MaxCompletionTokens: openai.Int(24),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Tell a story.")},
	}
	whole := must(writes.Chat.Completions.New(ctx, chat))
	streamed := chat
	streamed.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream, all := writes.Chat.Completions.NewStreaming(ctx, streamed), openai.ChatCompletionAccumulator{}
	for stream.Next() {
		check(all.AddChunk(stream.Current()), "a chunk that does not fit")
	}
	check(stream.Err() == nil, stream.Err())
	check(all.Choices[0].Message.Content == whole.Choices[0].Message.Content, "stream and whole differ")
	check(all.Usage.CompletionTokens == whole.Usage.CompletionTokens, "usage")

	schema := map[string]any{"type": "object", "properties": map[string]any{"at": map[string]any{"enum": []string{"sky", "sea"}}},
		"required": []string{"at"}, "additionalProperties": false}
	formed := chat
	formed.MaxCompletionTokens = openai.Int(200)
	formed.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "look", Schema: schema, Strict: openai.Bool(true)}}}
	looks(must(writes.Chat.Completions.New(ctx, formed)).Choices[0].Message.Content)
	called := chat
	called.MaxCompletionTokens = openai.Int(200)
	called.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "look", Parameters: schema})}
	called.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
	call := must(writes.Chat.Completions.New(ctx, called)).Choices[0].Message
	looks(call.ToolCalls[0].Function.Arguments)
	called.Messages = append(called.Messages, call.ToParam(), openai.ToolMessage("blue", call.ToolCalls[0].ID))
	must(writes.Chat.Completions.New(ctx, called))

	text := openai.CompletionNewParams{Model: openai.CompletionNewParamsModel(model), MaxTokens: openai.Int(16), Temperature: openai.Float(0),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("One rainy morning in")}}
	said, pieces := must(writes.Completions.New(ctx, text)).Choices[0].Text, ""
	texts := writes.Completions.NewStreaming(ctx, text)
	for texts.Next() {
		for _, choice := range texts.Current().Choices {
			pieces += choice.Text
		}
	}
	check(texts.Err() == nil && pieces == said, "texts differ")

	asked := responses.ResponseNewParams{Model: model, Temperature: openai.Float(0), MaxOutputTokens: openai.Int(24),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Tell a story.")}}
	response := must(writes.Responses.New(ctx, asked))
	check(must(writes.Responses.Get(ctx, response.ID, responses.ResponseGetParams{})).OutputText() == response.OutputText(), "what is stored differs")
	events, deltas := writes.Responses.NewStreaming(ctx, asked), ""
	for events.Next() {
		if delta, is := events.Current().AsAny().(responses.ResponseTextDeltaEvent); is {
			deltas += delta.Delta
		}
	}
	check(events.Err() == nil && deltas == response.OutputText(), "the stream of a response differs")
	check(writes.Responses.Delete(ctx, response.ID) == nil, "delete")

	reads, hears := client("READS"), client("HEARS")
	vectors := must(reads.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "reads",
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}}))
	check(len(vectors.Data) == 2, "vectors")
	must(hears.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{Model: "hears", File: must(os.Open(os.Getenv("SOUND")))}))

	chat.Temperature = openai.Float(3)
	_, err := writes.Chat.Completions.New(ctx, chat)
	var refusal *openai.Error
	check(errors.As(err, &refusal) && refusal.StatusCode == 400 && refusal.Param == "temperature", err)
	fmt.Println("every answer is as the client wants it")
}

// looks checks an object of the schema.
func looks(text string) {
	var object struct{ At string }
	check(json.Unmarshal([]byte(text), &object) == nil && (object.At == "sky" || object.At == "sea"), text)
}
